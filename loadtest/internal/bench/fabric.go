package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/account"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// A Process is one that answers. Its configuration is made from the addresses of the
// processes before it.
type Process struct {
	Role   string
	Config func(at Addresses) any
}

// Addresses has the address of the last process of each role.
type Addresses map[string]roles.Address

// A Fabric is a broker, other processes that answer, and a requester that measures them.
type Fabric struct {
	// Crew is its own: fabrics end separately.
	Crew *proc.Crew
	// Config starts the broker, again after a kill.
	Config roles.BrokerConfig
	At     Addresses
	Broker *proc.Child
	// Requester asks the fabric.
	Requester *proc.Child
	measured  []member // besides the broker
	// asked counts the calls of all windows.
	asked int64
	// linger is how long the processes may continue to work on the calls of a window.
	linger time.Duration
	// account has the costs of a window say what the time is for.
	account bool
}

type member struct {
	role  string
	child *proc.Child
}

// Fabric prepares a fabric, in a folder of its own, that is not started yet.
func (o *Options) Fabric(name, hooks string, c roles.BrokerConfig) (*Fabric, error) {
	dir := filepath.Join(o.Dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating a folder for the broker: %w", err)
	}
	c.Hooks, c.Data = filepath.Join(dir, "hooks.yaml"), filepath.Join(dir, "data")
	if err := os.WriteFile(c.Hooks, []byte(hooks), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	return &Fabric{Crew: o.Crew.Like(), Config: c, At: Addresses{}}, nil
}

// Start starts a broker with hooks, and then the other processes. If it fails, it stops all.
func (o *Options) Start(ctx context.Context, name, hooks string, c roles.BrokerConfig, others ...Process) (*Fabric, error) {
	f, err := o.Fabric(name, hooks, c)
	if err != nil {
		return nil, err
	}
	err = f.Up(ctx)
	for _, p := range others {
		if err == nil {
			_, err = f.Add(ctx, p)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Stop())
	}
	return f, nil
}

// Up starts the broker.
func (f *Fabric) Up(ctx context.Context) (err error) {
	var at roles.Address
	f.Broker, err = f.Crew.Start(ctx, roles.Broker, f.Config, &at)
	f.At[roles.Broker] = at
	return err
}

// Add starts another process.
func (f *Fabric) Add(ctx context.Context, p Process) (*proc.Child, error) {
	var at roles.Address
	child, err := f.Crew.Start(ctx, p.Role, p.Config(f.At), &at)
	if err != nil {
		return nil, err
	}
	f.At[p.Role] = at
	f.Measured(p.Role, child)
	return child, nil
}

// Measured adds a process whose costs are measured.
func (f *Fabric) Measured(role string, child *proc.Child) {
	f.measured = append(f.measured, member{role, child})
}

// Ask starts the requester.
func (f *Fabric) Ask(ctx context.Context) (err error) {
	f.Requester, err = f.Crew.Start(ctx, roles.Requester, roles.Places{
		NATS: f.URL(), Fabric: f.URL(), Inside: f.At[roles.Inside].URL, Webhook: f.At[roles.Webhook].URL, Stages: f.At[roles.StageOne].URL,
	}, nil)
	return err
}

// URL returns the address of the broker's server.
func (f *Fabric) URL() string { return f.At[roles.Broker].URL }

// Stop ends all processes.
func (f *Fabric) Stop() error { return f.Crew.Stop() }

// StopAll ends several fabrics.
func StopAll(all []*Fabric) error {
	var errs []error
	for _, f := range all {
		errs = append(errs, f.Stop())
	}
	return errors.Join(errs...)
}

// Settle makes a process collect its garbage and report what it used before and after.
func Settle(ctx context.Context, child *proc.Child) (s roles.Settled, err error) {
	return s, child.Ask(ctx, roles.SettleRequest{}, &s)
}

// settle settles every process, the broker first, and may begin accounts of their time.
func (f *Fabric) settle(ctx context.Context, account bool) (all []roles.Settled, err error) {
	for _, m := range append([]member{{roles.Broker, f.Broker}}, f.measured...) {
		var s roles.Settled
		if err := m.child.Ask(ctx, roles.SettleRequest{Account: account}, &s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// Ready waits until the answers to a target are correct.
func (f *Fabric) Ready(ctx context.Context, t roles.Target) error {
	return f.Requester.Ask(ctx, roles.Request{Target: t}, nil)
}

// Measure measures one target. A window without callers only waits until the answers are
// correct.
func (f *Fabric) Measure(ctx context.Context, t roles.Target, w load.Window) (s Sample, err error) {
	if w.Callers == 0 {
		return s, f.Ready(ctx, t)
	}
	before, err := f.settle(ctx, f.account)
	if err != nil {
		return s, err
	}
	if err := f.Requester.Ask(ctx, roles.Request{Target: t, Window: w}, &s.Figures); err != nil {
		return s, err
	}
	f.asked += s.Asked
	load.Pause(ctx, f.linger)
	after, err := f.settle(ctx, false)
	if err != nil {
		return s, err
	}
	sums := map[string]load.Used{roles.Requester: s.Used, roles.Broker: after[0].Before.Since(before[0].After)}
	for i, m := range f.measured {
		sums[m.role] = sums[m.role].Plus(after[i+1].Before.Since(before[i+1].After))
	}
	n := float64(max(s.Asked, 1))
	if f.account {
		s.Purposes = map[account.Purpose]float64{}
		for i, a := range after {
			s.divide(a.Purposes, a.Before.Since(before[i].After).CPU.Std().Seconds()/n)
		}
	}
	s.Costs = map[string]Cost{}
	for role, used := range sums {
		s.Costs[role] = Cost{
			CPU:         duration(used.CPU.Std().Seconds() / n),
			Allocations: float64(used.Allocations) / n, Bytes: float64(used.Bytes) / n, Waits: float64(used.Waits) / n,
		}
	}
	return s, nil
}

// divide adds the time of a process to the purposes, in the proportion of its profile.
func (s *Sample) divide(profiled map[account.Purpose]schema.Duration, spent float64) {
	var sum schema.Duration
	for _, d := range profiled {
		sum += d
	}
	for p, d := range profiled {
		s.Purposes[p] += spent * float64(d) / float64(sum)
	}
}
