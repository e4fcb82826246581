// Package shim measures a hook that starts once per tool call, from exec to exit:
// `agentshim hook` direct and through the daemon. It compares them with a Go program that
// only makes one request on a unix socket, and with a Python hook that does the same. Only
// ratios to the Go program have budgets. Each repetition measures in random order.
//
// It also measures the daemon: 200 parallel calls, and its memory after many calls.
package shim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/loadtest/stats"
)

// Options say how thoroughly to measure.
type Options struct {
	// Repetitions is how often every row is measured; fewer than one is one.
	Repetitions int
	// Runs is how many processes of each kind make one figure.
	Runs int
	// Calls is how many calls the daemon takes before its memory is looked at.
	Calls int
	// Slack is by what factor a budget may be exceeded, for short runs and busy
	// machines; below 1: not at all.
	Slack float64
	// Dir is an empty directory for what the processes keep.
	Dir string
	// Crew starts the broker.
	Crew *proc.Crew
	// Progress takes a line for every repetition; it must not be nil.
	Progress io.Writer
}

// Thorough are the options of a run whose figures are meant to be read.
func Thorough() Options { return Options{Repetitions: 10, Runs: 40, Calls: 100_000} }

// Quick are the options of a run that only looks whether everything answers right.
func Quick() Options { return Options{Repetitions: 1, Runs: 2, Calls: 500} }

// parallel is how many calls the daemon is given at once.
const parallel = 200

// Run builds the programs, starts a broker and a daemon, and measures. A single
// wrong answer is an error. Where ctx interrupts it the repetitions count that were over.
func Run(ctx context.Context, o Options) (*Report, error) {
	r, err := run(ctx, o)
	return r, errors.Join(err, o.Crew.Stop())
}

func run(ctx context.Context, o Options) (*Report, error) {
	s, err := open(ctx, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	samples := map[string][]sample{}
	for i := range max(o.Repetitions, 1) {
		// A repetition that is interrupted adds nothing.
		err := s.repetition(ctx, o.Runs, samples)
		if err != nil && ctx.Err() != nil && i > 0 {
			break
		}
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(o.Progress, "repetition %d of %d\n", i+1, max(o.Repetitions, 1))
	}
	r := judged(o, samples)
	if r.Binary, err = size(s.shim); err != nil {
		return nil, err
	}
	d, err := s.load(ctx, o.Calls)
	switch {
	case err == nil:
		r.Daemon = d
	case ctx.Err() == nil:
		return nil, err
	}
	r.document()
	return r, nil
}

func size(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("looking at the program: %w", err)
	}
	return info.Size(), nil
}

// repetition starts every program so many times, one after the other in an
// order of its own, and adds each one's median.
func (s *session) repetition(ctx context.Context, runs int, samples map[string][]sample) error {
	spent := map[string][]cost{}
	all := s.contenders()
	for range max(runs, 1) {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, c := range all {
			one, err := s.once(ctx, c)
			if err != nil {
				return fmt.Errorf("the row %q: %w", c.name, err)
			}
			spent[c.name] = append(spent[c.name], one)
		}
	}
	for name, all := range spent {
		samples[name] = append(samples[name], summed(all))
	}
	return nil
}

// A sample is what one repetition showed of one program.
type sample struct {
	// took is the median of its times.
	took float64
	// cpu and faults are of one run, on the average.
	cpu, faults float64
}

func summed(all []cost) (s sample) {
	took := make([]float64, len(all))
	for i, c := range all {
		took[i] = float64(c.took)
		s.cpu += float64(c.cpu) / float64(len(all))
		s.faults += float64(c.faults) / float64(len(all))
	}
	s.took = stats.Median(took)
	return s
}

// each are the figures of one kind.
func each(all []sample, of func(sample) float64) []float64 {
	values := make([]float64, len(all))
	for i, s := range all {
		values[i] = of(s)
	}
	return values
}

// session is the processes that live through all repetitions.
type session struct {
	dir, shim, base string
	nats, socket    string
	daemon          *daemonProcess
	echo            io.Closer
	asked           int // so that no two calls are the same
}

func open(ctx context.Context, o Options) (*session, error) {
	s := &session{dir: o.Dir, socket: filepath.Join(o.Dir, "agentshim.sock")}
	err := buildable(ctx)
	if err != nil {
		return nil, err
	}
	if s.shim, err = build(ctx, o.Dir, agentshim); err != nil {
		return nil, err
	}
	if s.base, err = build(ctx, o.Dir, "loadtest/shim/baseline"); err != nil {
		return nil, err
	}
	hooks := filepath.Join(o.Dir, "hooks.yaml")
	if err := os.WriteFile(hooks, []byte("presets: []\nhooks: {}\n"), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	var at roles.Address
	if _, err := o.Crew.Start(ctx, roles.Broker, roles.BrokerConfig{Hooks: hooks, Data: filepath.Join(o.Dir, "data")}, &at); err != nil {
		return nil, err
	}
	s.nats = at.URL
	if s.echo, err = listen(filepath.Join(o.Dir, "echo.sock")); err != nil {
		return nil, err
	}
	if s.daemon, err = s.startDaemon(ctx); err != nil {
		return nil, errors.Join(err, s.echo.Close())
	}
	return s, nil
}

func (s *session) close() {
	s.daemon.stop()
	_ = s.echo.Close()
}

// agentshim is the program that is measured.
const agentshim = "cmd/agentshim"

// dawdle is how long a process may take that should take milliseconds.
const dawdle = 20 * time.Second
