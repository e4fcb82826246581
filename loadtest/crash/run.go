package crash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/loadtest/audit"
	"github.com/hookfabric/hookfabric/loadtest/machine"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// Options say how much is to go wrong, and for how long.
type Options struct {
	// For is how long the load lasts. Processes are killed until a lease before
	// its end, or, if it is short, in its first third.
	For time.Duration
	// Agents is how many there are, Injections how many are put into the queue at least.
	Agents, Injections int
	// Kill limits the kills to these kinds of processes; none: all of them.
	Kill []string
	// Dir is an empty directory for what the processes keep.
	Dir string
	// Crew starts the processes.
	Crew *proc.Crew
	// Progress takes a line now and then; it must not be nil.
	Progress io.Writer
}

const (
	// lease is how long items stay with a shim that says nothing.
	lease = 30 * time.Second
	// draining is how long it may take, after the load's end, until all was
	// handed over: a lease that began with its last second, and as much again.
	draining = 2 * lease
	// look is how often the logs are read.
	look = 250 * time.Millisecond
	// tell is how often the progress is told.
	tell = 5 * time.Second
)

// Check says what is wrong with the options.
func (o *Options) Check() error {
	if o.For < time.Second || o.Agents < 1 || o.Injections < 1 {
		return fmt.Errorf("a run takes at least 1s, one agent and one injection, not %v, %d and %d", o.For, o.Agents, o.Injections)
	}
	for _, kind := range o.Kill {
		if !slices.Contains(Kinds(), kind) {
			return fmt.Errorf("there is no kind of process %q; write some of %v", kind, Kinds())
		}
	}
	return nil
}

// faults is how long processes are killed.
func (o *Options) faults() time.Duration { return max(o.For-lease, o.For/3) }

// Run does all of it: start, load and faults, the end of the faults, waiting
// until all was handed over, a last kill of the broker, the audit.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	facts := machine.Here() // before the run is itself the load
	f, err := o.field()
	if err != nil {
		return nil, err
	}
	r, err := f.run(ctx)
	if err = errors.Join(err, f.stop()); err != nil {
		return nil, err
	}
	f.judge(r)
	r.Machine = facts
	return r, nil
}

// field is where it all happens.
type field struct {
	Options
	nats    string
	began   time.Time
	deaths  deaths
	victims []*victim // in the order of their start
	logs    []*audit.Reader
	audit   *audit.Audit
	all     int // injections
}

// run is the run itself; what it returns is without the audit's findings.
func (f *field) run(ctx context.Context) (*Report, error) {
	for _, v := range f.victims {
		if err := v.start(ctx, f.Crew); err != nil {
			return nil, err
		}
	}
	faults := make(chan struct{})
	ended := time.AfterFunc(f.faults(), func() { close(faults) })
	defer ended.Stop()
	g, together := errgroup.WithContext(ctx)
	for _, v := range f.victims {
		g.Go(func() error { return v.suffer(together, faults, f.Crew, &f.deaths) })
	}
	r := &Report{Agents: f.Agents, For: schema.Duration(f.For), Faults: schema.Duration(f.faults())}
	g.Go(func() error { return f.loaded(together, r) })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return r, f.last(ctx, r)
}

// loaded waits for the load's end, and then until all was handed over or the
// time for that is over.
func (f *field) loaded(ctx context.Context, r *Report) error {
	told := f.began
	for measure.Pause(ctx, look) {
		if err := f.read(); err != nil {
			return err
		}
		now := time.Now()
		since := now.Sub(f.began)
		if now.Sub(told) >= tell {
			told = now
			f.progress(since)
		}
		if since < f.For {
			continue
		}
		done := f.audit.Settled() >= f.all && f.audit.Open() == 0
		if done || since > f.For+draining {
			r.Drained, r.Overdue = schema.Duration(since-f.For), f.audit.Open()
			return nil
		}
	}
	return context.Cause(ctx)
}

// last kills the broker once more, when nothing is left to hand over: what was
// acknowledged must not come back with it.
func (f *field) last(ctx context.Context, r *Report) error {
	broker := f.victims[0]
	if err := broker.kill(&f.deaths); err != nil {
		return err
	}
	if err := broker.start(ctx, f.Crew); err != nil {
		return err
	}
	// A lease that nobody acknowledged would end in this time, if it is a long run.
	if !measure.Pause(ctx, min(f.For/10, lease+lease/6)) {
		return context.Cause(ctx)
	}
	return f.pending(ctx, r)
}

func (f *field) progress(since time.Duration) {
	_, counts := f.deaths.soFar()
	fmt.Fprintf(f.Progress, "%v: %d of %d accepted, %d of them not handed over yet, killed:", since.Round(time.Second), f.audit.Accepted(), f.all, f.audit.Open())
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(f.Progress, " %d×%s", counts[kind], kind)
	}
	fmt.Fprintln(f.Progress)
}

// read has the audit read on in all logs.
func (f *field) read() error {
	for _, l := range f.logs {
		if err := l.Next(f.audit.Take); err != nil {
			return err
		}
	}
	return nil
}

// stop ends all processes, those first that ask.
func (f *field) stop() error {
	var errs []error
	for _, v := range slices.Backward(f.victims) {
		errs = append(errs, v.stop())
	}
	errs = append(errs, f.read())
	for _, l := range f.logs {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// judge fills in what the audit found.
func (f *field) judge(r *Report) {
	killed, counts := f.deaths.soFar()
	r.Killed, r.Calls = counts, f.audit.Calls()
	r.Findings = f.audit.Judge(killed)
	r.Asked = f.all
	if w := f.audit.Waits(); len(w) > 0 {
		r.Wait = Wait{P50: at(w, 0.5), P99: at(w, 0.99), Most: at(w, 1)}
	}
	for _, l := range f.logs {
		r.Torn += l.Torn
	}
}

// at is a quantile of sorted durations.
func at(sorted []time.Duration, q float64) schema.Duration {
	return schema.Duration(sorted[min(int(q*float64(len(sorted))), len(sorted)-1)])
}

// hooksYAML is what the broker runs: the delivery hooks, and two hooks of the
// hookworkers' pool.
func hooksYAML() string {
	return fmt.Sprintf(`hooks:
  PreToolUse:
    - {name: free, matcher: %[1]s, type: builtin, handler: allow, pool: %[3]s, timeout: 3, readonly: true}
    - {name: forbidden, matcher: %[2]s, type: builtin, handler: deny, pool: %[3]s, timeout: 3, readonly: true, fail_closed: true}
`, free, forbidden, pool)
}

// write writes the configuration into the directory.
func (o *Options) write() (string, error) {
	file := filepath.Join(o.Dir, "hooks.yaml")
	if err := os.WriteFile(file, []byte(hooksYAML()), 0o600); err != nil {
		return "", fmt.Errorf("writing the configuration: %w", err)
	}
	return file, nil
}
