package scale

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/loadtest/bench"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// remote is the pool of the worker.
const remote = "remote"

// relaxed is the sync interval of the brokers: only the units measure the disk.
const relaxed = schema.Duration(time.Second)

// tool is the tool of calls where it does not matter.
const tool = "Bash"

// A stand is a fabric of its own: a broker, perhaps a worker, and agents.
type stand struct {
	crew   *proc.Crew
	config roles.BrokerConfig
	nats   string
	broker *proc.Child
	worker *proc.Child // nil: none
	crowd  *proc.Child
	crowds []*proc.Child // further ones
}

// start starts a broker with a configuration, and agents with one connection.
func (r *run) start(ctx context.Context, name, hooks string) (*stand, error) {
	s, err := r.bare(ctx, name, hooks)
	if err != nil {
		return nil, err
	}
	if s.crowd, err = s.crew.Start(ctx, roles.Crowd, roles.CrowdConfig{NATS: s.nats, Prefix: "agent-"}, nil); err == nil {
		err = s.crowd.Ask(ctx, roles.CrowdRequest{Open: 1}, nil)
	}
	if err != nil {
		return nil, errors.Join(err, s.crew.Stop())
	}
	return s, nil
}

// bare starts a broker alone.
func (r *run) bare(ctx context.Context, name, hooks string) (*stand, error) {
	free, err := bustest.FindAddresses(1)
	if err != nil {
		return nil, err
	}
	s := &stand{crew: r.Crew.Like()}
	if s.config, err = bench.Broker(filepath.Join(r.Dir, name), hooks, roles.BrokerConfig{Listen: free[0], Sync: relaxed}); err != nil {
		return nil, err
	}
	if err := s.up(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), s.crew.Stop())
	}
	return s, nil
}

// up starts the broker.
func (s *stand) up(ctx context.Context) (err error) {
	var at roles.Address
	s.broker, err = s.crew.Start(ctx, roles.Broker, s.config, &at)
	s.nats = at.URL
	return err
}

// work starts a worker of the remote pool.
func (s *stand) work(ctx context.Context, nats string) (err error) {
	s.worker, err = s.crew.Start(ctx, roles.HookWorker, roles.WorkerConfig{NATS: nats, Pool: remote}, nil)
	return err
}

// stands end together.
type stands []*stand

func (all stands) stop() error {
	var errs []error
	for _, s := range all {
		errs = append(errs, s.stop())
	}
	return errors.Join(errs...)
}

// stop ends the agents first: thousands of them would look for the broker.
func (s *stand) stop() error {
	var errs []error
	for _, c := range s.crowds {
		errs = append(errs, c.Stop())
	}
	return errors.Join(append(errs, s.crew.Stop())...)
}

// with starts a stand, calls f, and ends the stand.
func (r *run) with(ctx context.Context, name, hooks string, f func(*stand) error) error {
	s, err := r.start(ctx, name, hooks)
	if err != nil {
		return err
	}
	return errors.Join(f(s), s.crew.Stop())
}

// look makes a process collect its garbage, and returns what it uses; nil uses nothing.
func look(ctx context.Context, child *proc.Child) (took roles.Settled, err error) {
	if child == nil {
		return took, nil
	}
	return took, child.Ask(ctx, struct{}{}, &took)
}

// ready waits until the answers to a request are correct.
func (s *stand) ready(ctx context.Context, q roles.CrowdRequest) error {
	q.Window = measure.Window{}
	return s.crowd.Ask(ctx, q, nil)
}

// ask measures a window, and the CPU time of broker and worker in it.
func (s *stand) ask(ctx context.Context, q roles.CrowdRequest) (got bench.Sample, err error) {
	processes := map[string]*proc.Child{roles.Broker: s.broker, roles.HookWorker: s.worker}
	before := map[string]roles.Settled{}
	for role, child := range processes {
		if before[role], err = look(ctx, child); err != nil {
			return got, err
		}
	}
	if err := s.crowd.Ask(ctx, q, &got.Figures); err != nil {
		return got, err
	}
	got.Costs = map[string]bench.Cost{}
	for role, child := range processes {
		after, err := look(ctx, child)
		if err != nil {
			return got, err
		}
		got.Costs[role] = bench.Cost{CPU: after.Before.Since(before[role].After).CPU / schema.Duration(max(got.Asked, 1))}
	}
	return got, nil
}

// hooksYAML returns a configuration whose hooks at PreToolUse are the lines.
func hooksYAML(lines []string) string {
	return "presets: []\nhooks:\n  PreToolUse:\n" + strings.Join(lines, "")
}

// hookYAML returns one hook that allows.
func hookYAML(name, matcher, pool string) string {
	return fmt.Sprintf("    - {name: %s, matcher: %q, type: builtin, handler: allow, pool: %s}\n", name, matcher, pool)
}
