package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/roles"
)

// A process is one that answers. Its configuration is made from the addresses of the
// processes before it.
type process struct {
	role   string
	config func(at addresses) any
}

// addresses has the address of the last process of each role.
type addresses map[string]roles.Address

// fabric is a broker, other processes that answer, and a requester that measures them.
type fabric struct {
	at        addresses
	requester *proc.Child
	others    []answerer
	// asked counts the calls of all windows.
	asked int64
	// linger is how long the processes may continue to work on the calls of a window.
	linger time.Duration
}

type answerer struct {
	role  string
	child *proc.Child
}

// Broker creates the folder dir with a configuration and, unless the broker uses another
// server, a place for its data. It returns the configuration of the process.
func Broker(dir, hooks string, c roles.BrokerConfig) (roles.BrokerConfig, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return c, fmt.Errorf("creating a folder for the broker: %w", err)
	}
	if c.Hooks = filepath.Join(dir, "hooks.yaml"); c.NATS == "" {
		c.Data = filepath.Join(dir, "data")
	}
	if err := os.WriteFile(c.Hooks, []byte(hooks), 0o600); err != nil {
		return c, fmt.Errorf("writing the configuration: %w", err)
	}
	return c, nil
}

// open starts a broker with hooks in the folder dir, then the other processes, then the
// requester. The crew of the options ends them.
func (o *Options) open(ctx context.Context, dir, hooks string, c roles.BrokerConfig, others []process) (*fabric, error) {
	c, err := Broker(dir, hooks, c)
	if err != nil {
		return nil, err
	}
	f := &fabric{at: addresses{}}
	broker := process{roles.Broker, func(addresses) any { return c }}
	for _, p := range append([]process{broker}, others...) {
		var at roles.Address
		child, err := o.Crew.Start(ctx, p.role, p.config(f.at), &at)
		if err != nil {
			return nil, err
		}
		f.at[p.role] = at
		f.others = append(f.others, answerer{p.role, child})
	}
	f.requester, err = o.Crew.Start(ctx, roles.Requester, roles.Places{
		NATS: f.at[roles.Broker].URL, Fabric: f.at[roles.Broker].URL, Inside: f.at[roles.Inside].URL,
		Webhook: f.at[roles.Webhook].URL, Stages: f.at[roles.StageOne].URL,
	}, nil)
	return f, err
}

// settle makes every process collect its garbage and report what it used before and after.
func (f *fabric) settle(ctx context.Context) ([]roles.Settled, error) {
	all := make([]roles.Settled, len(f.others))
	for i, o := range f.others {
		if err := o.child.Ask(ctx, struct{}{}, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// measure measures one target. A window without callers waits until the answers are correct.
func (f *fabric) measure(ctx context.Context, t roles.Target, w measure.Window) (s Sample, err error) {
	if w.Callers == 0 {
		return s, f.requester.Ask(ctx, roles.Request{Target: t}, nil)
	}
	before, err := f.settle(ctx)
	if err != nil {
		return s, err
	}
	if err := f.requester.Ask(ctx, roles.Request{Target: t, Window: w}, &s.Figures); err != nil {
		return s, err
	}
	f.asked += s.Asked
	measure.Pause(ctx, f.linger)
	after, err := f.settle(ctx)
	if err != nil {
		return s, err
	}
	sums := map[string]measure.Used{roles.Requester: s.Used}
	for i, o := range f.others {
		sums[o.role] = sums[o.role].Plus(after[i].Before.Since(before[i].After))
	}
	s.Costs = map[string]Cost{}
	for role, used := range sums {
		n := float64(max(s.Asked, 1))
		s.Costs[role] = Cost{
			CPU:         duration(used.CPU.Std().Seconds() / n),
			Allocations: float64(used.Allocations) / n, Bytes: float64(used.Bytes) / n, Waits: float64(used.Waits) / n,
		}
	}
	return s, nil
}
