// Package scale shows that throughput grows as workers do, for hooks that
// wait: what a policy does that asks a database or another service. Workers
// take a bounded number of hooks at once, so the pool is what limits; the load
// offered is more than all of them can take.
package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/machine"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

// The shape of the load.
const (
	// callers is the offered concurrency.
	callers = 64
	// slots is how many hooks a worker runs at once.
	slots = 8
	// wait is how long each hook waits.
	wait = 20 * time.Millisecond
	pool = "waiting"
)

// steps are the numbers of workers, growing.
func steps() []int { return []int{1, 2, 4} }

// Options say how thoroughly to measure.
type Options struct {
	// Repetitions is how often the pool is grown from one worker; fewer than one is one.
	Repetitions int
	// Window is how long a step is measured, Warm how long before that the
	// callers already ask: long enough for a new worker to be known to all.
	Window, Warm time.Duration
	// Dir is an empty directory for what the processes keep.
	Dir string
	// Crew starts the processes.
	Crew *proc.Crew
	// Progress takes a line for every step; it must not be nil.
	Progress io.Writer

	machine machine.Facts
}

// Thorough are the options of a run whose figures are meant to be read.
func Thorough() Options {
	return Options{Repetitions: 5, Window: time.Second, Warm: 600 * time.Millisecond}
}

// Quick are the options of a run that only looks whether everything answers right.
func Quick() Options {
	return Options{Repetitions: 1, Window: 300 * time.Millisecond, Warm: 300 * time.Millisecond}
}

// Run starts a broker and a requester, and in each repetition a growing number
// of workers. A single wrong answer is an error.
func Run(ctx context.Context, o Options) (*Report, error) {
	o.machine = machine.Here() // before the run is itself the load
	s, err := open(ctx, o)
	if err != nil {
		return nil, errors.Join(err, o.Crew.Stop())
	}
	samples, err := s.repeated(ctx, o)
	if err = errors.Join(err, o.Crew.Stop()); err != nil {
		return nil, err
	}
	return judged(o, samples), nil
}

// session is the processes that live through all repetitions.
type session struct {
	nats      string
	requester *proc.Child
}

func open(ctx context.Context, o Options) (*session, error) {
	hooks := filepath.Join(o.Dir, "hooks.yaml")
	if err := os.WriteFile(hooks, []byte(hooksYAML()), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	var at roles.Address
	config := roles.BrokerConfig{Hooks: hooks, Data: filepath.Join(o.Dir, "data")}
	if _, err := o.Crew.Start(ctx, roles.Broker, config, &at); err != nil {
		return nil, err
	}
	requester, err := o.Crew.Start(ctx, roles.Requester, roles.Places{Fabric: at.URL}, nil)
	return &session{nats: at.URL, requester: requester}, err
}

// hooksYAML is one hook that waits.
func hooksYAML() string {
	return fmt.Sprintf(`presets: []
hooks:
  PreToolUse:
    - {name: waits, matcher: wait, type: builtin, handler: %s, pool: %s}
`, roles.WaitHandler, pool)
}

// sample is what one repetition showed, by the number of workers.
type sample map[int]measure.Figures

func (s *session) repeated(ctx context.Context, o Options) ([]sample, error) {
	var samples []sample
	for i := range max(o.Repetitions, 1) {
		one, err := s.repetition(ctx, o)
		if err != nil {
			return nil, err
		}
		samples = append(samples, one)
		fmt.Fprintf(o.Progress, "repetition %d of %d\n", i+1, max(o.Repetitions, 1))
	}
	return samples, nil
}

// repetition grows the pool step by step, measures each, and ends its workers.
func (s *session) repetition(ctx context.Context, o Options) (one sample, err error) {
	workers := &proc.Crew{Args: o.Crew.Args, Log: o.Crew.Log}
	defer func() { err = errors.Join(err, workers.Stop()) }()
	one, here := sample{}, 0
	for _, want := range steps() {
		for ; here < want; here++ {
			config := roles.WaiterConfig{NATS: s.nats, Pool: pool, Wait: schema.Duration(wait), Slots: slots}
			if _, err := workers.Start(ctx, roles.Waiter, config, nil); err != nil {
				return nil, err
			}
		}
		f, err := s.measure(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("with %d workers: %w", want, err)
		}
		one[want] = f
	}
	return one, nil
}

// measure waits until the hook is answered and then measures it.
func (s *session) measure(ctx context.Context, o Options) (measure.Figures, error) {
	var f measure.Figures
	r := roles.Request{Target: roles.Target{Way: roles.Fabric, Tool: "wait", Hooks: 1}}
	if err := s.requester.Ask(ctx, r, nil); err != nil {
		return f, err
	}
	r.Window = measure.Window{Callers: callers, Warm: schema.Duration(o.Warm), Long: schema.Duration(o.Window)}
	return f, s.requester.Ask(ctx, r, &f)
}
