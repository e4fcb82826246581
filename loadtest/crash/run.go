package crash

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/loadtest/audit"
	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/field"
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
		return fmt.Errorf("--for is %v, --agents is %d and --injections is %d; write at least 1s, 1 and 1", o.For, o.Agents, o.Injections)
	}
	for _, kind := range o.Kill {
		if !slices.Contains(Kinds(), kind) {
			return fmt.Errorf("unknown kind of process %q; write one or more of %v", kind, Kinds())
		}
	}
	return nil
}

// faults is how long processes are killed.
func (o *Options) faults() time.Duration { return max(o.For-lease, o.For/3) }

// Run does all of it: start, load and faults, the end of the faults, waiting
// until all was handed over, a last kill of the broker, the audit. Where ctx interrupts
// it the audit is of what was logged until then.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	r, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	report := &Report{Agents: o.Agents, For: schema.Duration(o.For), Faults: schema.Duration(o.faults())}
	err = r.run(ctx, report)
	report.Findings.Early = err != nil && ctx.Err() != nil
	if err = errors.Join(err, r.stop()); err != nil && !report.Findings.Early {
		return nil, err
	}
	r.judge(report)
	report.document()
	return report, nil
}

// run is a run under way.
type run struct {
	Options
	field *field.Field
	began time.Time
	logs  []*audit.Reader
	audit *audit.Audit
	all   int // injections
}

// run is the run itself; what it reports is without the audit's findings.
func (r *run) run(ctx context.Context, report *Report) error {
	schedule := &faults.Schedule{Faults: r.kills(r.field.Members()), For: r.faults()}
	g, together := errgroup.WithContext(ctx)
	over := make(chan struct{})
	g.Go(func() error {
		_, err := schedule.Run(together, r.field)
		return err
	})
	g.Go(func() error { return r.field.Watch(together, over) })
	g.Go(func() error {
		defer close(over)
		return r.loaded(together, report)
	})
	if err := g.Wait(); err != nil {
		return err
	}
	return r.last(ctx, report)
}

// loaded waits for the load's end, and then until all was handed over or the
// time for that is over.
func (r *run) loaded(ctx context.Context, to *Report) error {
	told := r.began
	for measure.Pause(ctx, look) {
		if err := r.read(); err != nil {
			return err
		}
		now := time.Now()
		since := now.Sub(r.began)
		if now.Sub(told) >= tell {
			told = now
			r.progress(since)
		}
		if since < r.For {
			continue
		}
		done := r.audit.Settled() >= r.all && r.audit.Open() == 0
		if done || since > r.For+draining {
			to.Drained, to.Overdue = schema.Duration(since-r.For), r.audit.Open()
			return nil
		}
	}
	return context.Cause(ctx)
}

// last kills the broker once more, when nothing is left to hand over: what was
// acknowledged must not come back with it.
func (r *run) last(ctx context.Context, to *Report) error {
	if err := r.field.Fault(ctx, faults.Fault{Kind: faults.Kill, Member: field.Numbered(field.Broker, 1)}); err != nil {
		return err
	}
	// A lease that nobody acknowledged would end in this time, if it is a long run.
	if !measure.Pause(ctx, min(r.For/10, lease+lease/6)) {
		return context.Cause(ctx)
	}
	return r.pending(ctx, to)
}

func (r *run) progress(since time.Duration) {
	counts := r.killed()
	fmt.Fprintf(r.Progress, "%v: %d of %d accepted, %d of them not handed over yet, killed:", since.Round(time.Second), r.audit.Accepted(), r.all, r.audit.Open())
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(r.Progress, " %d×%s", counts[kind], kind)
	}
	fmt.Fprintln(r.Progress)
}

// read has the audit read on in all logs.
func (r *run) read() error {
	for _, l := range r.logs {
		if err := l.Next(r.audit.Take); err != nil {
			return err
		}
	}
	return nil
}

// stop ends all processes, those first that ask.
func (r *run) stop() error {
	errs := []error{r.field.Close(), r.read()}
	for _, l := range r.logs {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// judge fills in what the audit found.
func (r *run) judge(to *Report) {
	to.Killed, to.Calls = r.killed(), r.audit.Calls()
	early := to.Findings.Early
	to.Findings = r.audit.Judge(r.field.Killed())
	to.Findings.Early = early
	to.Asked = r.all
	if w := r.audit.Waits(); len(w) > 0 {
		to.Wait = Wait{P50: at(w, 0.5), P99: at(w, 0.99), Most: at(w, 1)}
	}
	for _, l := range r.logs {
		to.Torn += l.Torn
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
