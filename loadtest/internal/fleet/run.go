package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/loadtest/internal/audit"
	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// lease is how long items stay with an agent that does not acknowledge them.
	lease = 30 * time.Second
	// draining limits how long the handover of all items may take after the load.
	draining = 2 * lease
	// look is the interval between reads of the logs. tell is the interval between progress
	// lines.
	look = 250 * time.Millisecond
	tell = 5 * time.Second
	// lead is how long before the load all processes start.
	lead = 500 * time.Millisecond
	// inTheLoad is the part of the load in which producers send injections.
	inTheLoad = 0.95
)

// Measured is the result of one load.
type Measured struct {
	Scenario *scenario.Scenario
	// Began is when measuring began.
	Began time.Time
	// Series are the calls. Bare are the requests of the same time that skip the fabric.
	Series *load.Series
	Bare   *load.Series
	// Findings are the audit's findings. Waits are how long injections were on their way.
	Findings audit.Findings
	Waits    []time.Duration
	// Attempts are the requests of producers in a cluster, in the order of their answers.
	Attempts []audit.Attempt
	// Told is the number of injections that producers had to send.
	Told int
	// Failures counts calls and hooks without an answer, by cause.
	Failures map[string]int64
	// Samples are the usage of the processes, one a second.
	Samples []Sample
	// Done are the faults that happened.
	Done []faults.Done
	// Early means that the load was interrupted. The scenario is then only as long as the
	// load was until that time.
	Early bool

	ending error // the errors at the end of an early load
	left   left
	checks report.Document
}

// A Sample is the usage of the processes at one moment.
type Sample struct {
	// At is the time in seconds since measuring began.
	At      float64
	Members map[string]proc.Usage
}

// run is a load in progress.
type run struct {
	*Session
	*Measured
	dir     string
	begin   time.Time // of the load
	curve   load.Curve
	drivers []*faults.Victim
	// others are producers and daemons, which end after the drivers.
	others []*faults.Victim
	counts []*audit.Reader
	logs   []*audit.Reader
	audit  *audit.Audit
	idle   map[string]bool // drivers, by process
	shown  shown
}

// Load puts the fabric under the scenario's load. It ignores the scenario's fabric and uses
// the session's. If ctx interrupts the load, Load returns the measurements until then.
func (x *Session) Load(ctx context.Context, s *scenario.Scenario) (*Measured, error) {
	x.loads++
	r := &run{
		Session: x, Measured: &Measured{Scenario: s, Series: load.NewSeries(), Bare: load.NewSeries(), Failures: map[string]int64{}},
		dir: filepath.Join(x.Dir, fmt.Sprintf("load-%d", x.loads)), audit: audit.New(), idle: map[string]bool{},
	}
	defer r.closeLogs()
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making a directory for a load: %w", err)
	}
	r.begin = time.Now().Add(lead + time.Duration(s.Connections)*time.Millisecond)
	r.curve = append(load.Curve{warmUp(s)}, s.Curve()...)
	r.Began = r.begin.Add(s.Warm.Std())
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	if err := r.all(ctx); err != nil {
		return nil, err
	}
	r.judge()
	return r.Measured, nil
}

// warmUp returns the step before the measurement.
func warmUp(s *scenario.Scenario) load.Step {
	first := s.Curve()[0].Rate
	return load.Step{For: s.Warm, Rate: first}
}

// start starts the drivers, the producers and the daemon.
func (r *run) start(ctx context.Context) error {
	s := r.Scenario
	first, connections, direct := 0, s.Connections, s.Agents-s.Behind()
	for i := range s.Drivers {
		left := s.Drivers - i
		agents, mine := (direct-first)/left, connections/left
		if err := r.driver(ctx, scenario.Driver, "", first, agents, mine); err != nil {
			return err
		}
		first, connections = first+agents, connections-mine
	}
	if s.Behind() > 0 {
		if err := r.daemon(ctx); err != nil {
			return err
		}
	}
	if s.SendsMessages() {
		return r.producers(ctx)
	}
	return nil
}

// behindDaemon is the driver of the agents that ask through the daemon. It is never killed: the
// daemon acknowledges what it logs.
const behindDaemon = "behind"

// daemon starts the daemon, and the driver of the agents that ask through it.
func (r *run) daemon(ctx context.Context) error {
	name := r.name(scenario.Daemon)
	state := filepath.Join(r.dir, name)
	v, err := r.field.Add(ctx, faults.Spec{Name: name, Role: Daemon, Config: func(at faults.At) any {
		return DaemonConfig{NATS: at.NATS, State: state, By: at.By}
	}})
	if err != nil {
		return err
	}
	r.others = append(r.others, v)
	n := r.Scenario.Behind()
	return r.driver(ctx, behindDaemon, state, r.Scenario.Agents-n, n, 1)
}

// driver starts the driver of some agents, which ask through the daemon in a folder, if any.
func (r *run) driver(ctx context.Context, kind, daemon string, first, agents, connections int) error {
	name := r.name(kind)
	counts, err := r.open(name+".counts", &r.counts)
	if err != nil {
		return err
	}
	log, err := r.open(name+".log", &r.logs)
	if err != nil {
		return err
	}
	v, err := r.field.Add(ctx, faults.Spec{Name: name, Role: Driver, Spared: kind == behindDaemon, Config: func(at faults.At) any {
		return DriverConfig{
			NATS: at.NATS, Creds: r.field.Creds(), Daemon: daemon, Log: log, Counts: counts, By: at.By, Tag: r.tag, First: first, Agents: agents,
			Connections: max(connections, 1), Scenario: *r.Scenario, Curve: r.curve,
			Begin: r.begin.UnixNano(), Measured: r.Began.UnixNano(), Excused: r.Scenario.Excused(),
			Again: !strings.HasSuffix(at.By, ".1"),
		}
	}})
	if err != nil {
		return err
	}
	r.drivers = append(r.drivers, v)
	return nil
}

// producers starts the processes that send messages to agents. If there are few messages, only
// the first agents get some.
func (r *run) producers(ctx context.Context) error {
	lanes := float64(len(audit.Sources()) * r.Scenario.Producers)
	all := float64(r.Scenario.Messages)
	if all == 0 {
		all = r.curve.Calls() * r.Scenario.Injections
	}
	agents := make([]string, int(min(float64(r.Scenario.Agents), math.Ceil(all/lanes))))
	for i := range agents {
		agents[i] = agentName(r.tag, i)
	}
	each := int(math.Ceil(all / lanes / float64(len(agents))))
	r.Told = each * len(agents) * int(lanes)
	until := r.begin.Add(time.Duration(float64(r.curve.Long()) * inTheLoad))
	for i := range r.Scenario.Producers {
		name := r.name(scenario.Producer)
		log, err := r.open(name+".log", &r.logs)
		if err != nil {
			return err
		}
		v, err := r.field.Add(ctx, faults.Spec{Name: name, Role: Producer, Config: func(at faults.At) any {
			broker, url := 0, at.NATS
			if s := r.Scenario; s.Fabric.Cluster {
				broker = i%s.Fabric.Brokers + 1
				url = r.field.Peer(broker)
			}
			return audit.ProducerConfig{
				NATS: url, Broker: broker, Creds: r.field.Creds(), Log: log, By: at.By, Producer: name + "-" + r.tag, Agents: agents, Each: each,
				Until: until.UnixNano(),
			}
		}})
		if err != nil {
			return err
		}
		r.others = append(r.others, v)
	}
	return nil
}

// open opens a log to follow.
func (r *run) open(name string, to *[]*audit.Reader) (file string, err error) {
	file = filepath.Join(r.dir, name)
	l, err := audit.OpenReader(file)
	if err != nil {
		return "", err
	}
	*to = append(*to, l)
	return file, nil
}

func (r *run) closeLogs() {
	for _, l := range append(r.counts, r.logs...) {
		_ = l.Close() // it was opened for reading
	}
}

// all causes the faults, and waits for the end of the load and of the deliveries after it.
func (r *run) all(ctx context.Context) error {
	over := make(chan struct{})
	g, together := errgroup.WithContext(ctx)
	g.Go(func() error { return r.field.Watch(together, over) })
	g.Go(func() error {
		if !load.Pause(together, time.Until(r.Began)) {
			return nil
		}
		done, err := r.script()(together, r.Began)
		r.Done = done
		return err
	})
	g.Go(func() error {
		defer close(over)
		if err := r.follow(together); err != nil {
			return err
		}
		if !r.Scenario.LastKill {
			return nil
		}
		return r.lastKill(together)
	})
	err := g.Wait()
	if err != nil && ctx.Err() != nil {
		return r.early(ctx)
	}
	if err != nil {
		return err
	}
	return r.end()
}

// script returns the function that causes the faults.
func (r *run) script() func(context.Context, time.Time) ([]faults.Done, error) {
	if r.Script != nil {
		return r.Script
	}
	return func(ctx context.Context, _ time.Time) ([]faults.Done, error) {
		schedule := faults.Schedule{Faults: r.Scenario.Faults, Seed: r.Scenario.Seed, For: r.Scenario.For.Std(),
			Noted: func(d faults.Done) { r.Live.Fault(string(d.Fault.Kind)) }}
		return schedule.Run(ctx, r.field)
	}
}

// follow reads the logs until the load is over. It then continues until all items were
// handed over or its time is over.
func (r *run) follow(ctx context.Context) error {
	end := r.begin.Add(r.curve.Long())
	sampled, told := -1, time.Now()
	for load.Pause(ctx, look) {
		if err := r.read(); err != nil {
			return err
		}
		now := time.Now()
		if second := int(now.Sub(r.Began) / time.Second); second > sampled && !now.Before(r.Began) && now.Before(end.Add(time.Second)) {
			sampled = second
			r.Samples = append(r.Samples, Sample{At: now.Sub(r.Began).Seconds(), Members: r.field.Usage()})
		}
		if now.Sub(told) >= tell {
			told = now
			r.progress(now)
		}
		if now.Before(end) || !r.still() && now.Before(end.Add(r.patience())) {
			continue
		}
		waiting := r.audit.Waiting()
		if r.audit.Settled() >= r.Told && len(waiting) == 0 || now.After(end.Add(draining+r.patience())) {
			return nil
		}
		if err := r.sweep(ctx, waiting); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// patience returns how long after the load's end calls may be in flight: both calls of one
// use, and a tool that takes ten times as long as most.
func (r *run) patience() time.Duration {
	return 2*r.Scenario.Deadline.Std() + 10*r.Scenario.ToolTime.Std() + 2*cutEvery
}

// still reports whether no driver has a call in flight.
func (r *run) still() bool {
	for _, d := range r.drivers {
		if !r.idle[d.By()] {
			return false
		}
	}
	return true
}

// sweep makes agents get the items that wait for them.
func (r *run) sweep(ctx context.Context, waiting []string) error {
	if len(waiting) == 0 {
		return nil
	}
	for _, d := range r.drivers {
		if err := d.Ask(ctx, Sweep{Agents: waiting}, nil); err != nil && !errors.Is(err, faults.ErrKilled) {
			return err
		}
	}
	return nil
}

// read reads the new entries of all logs.
func (r *run) read() error {
	for _, l := range r.logs {
		if err := l.Next(r.audit.Take); err != nil {
			return err
		}
	}
	for _, l := range r.counts {
		if err := l.Lines(r.take); err != nil {
			return err
		}
	}
	return nil
}

// take adds the counts of a driver.
func (r *run) take(text []byte) error {
	var l Line
	if err := schema.Unmarshal(text, &l); err != nil {
		return err
	}
	r.idle[l.By] = l.Idle
	r.checks.Merge(l.Checks)
	for what, n := range l.Failures {
		r.Failures[what] += n
	}
	r.shown.take(r.Live, &l)
	r.Series.Take(&l.Cut)
	r.Bare.Take(&l.Bare)
	return nil
}

func (r *run) progress(now time.Time) {
	calls, wrong := int64(0), int64(0)
	for _, k := range r.Series.Kinds() {
		calls += k.Answered
	}
	for _, c := range r.checks.Checks {
		wrong += c.Wrong
	}
	r.shown.load(r.Live, r.curve, now.Sub(r.begin))
	fmt.Fprintf(r.Live, "%v of %v: %d events answered, %d wrong, %d messages to deliver\n",
		min(max(now.Sub(r.Began), 0), r.Scenario.For.Std()).Round(time.Second), r.Scenario.For, calls, wrong, r.audit.Open())
}

// end ends the load's own processes.
func (r *run) end() error {
	var errs []error
	for _, d := range slices.Concat(r.drivers, r.others) {
		errs = append(errs, d.End())
	}
	return errors.Join(append(errs, r.read(), r.readable())...)
}

// readable returns an error if more log lines are unreadable than killed processes can have
// left incomplete. The log is then not complete.
func (r *run) readable() error {
	torn, killed := 0, 0
	for _, l := range slices.Concat(r.counts, r.logs) {
		torn += l.Torn
	}
	for by := range r.field.Killed() {
		if own(by) {
			killed++
		}
	}
	if torn > killed*2 { // a driver writes two logs
		return fmt.Errorf("%d log lines in %s are unreadable although only %d processes that write them were killed; the checks would be incomplete", torn, r.dir, killed)
	}
	return nil
}

func (r *run) judge() {
	r.Findings, r.Waits, r.Attempts = r.audit.Judge(r.field.Killed()), r.audit.Waits(), r.audit.Attempts()
	r.leaves(append(r.audit.Waiting(), r.audit.Unsure(r.field.Killed())...))
	if r.Early {
		r.Findings.Early = true
		return
	}
	if late := r.Told - r.audit.Settled(); late > 0 {
		r.Findings.NeverSent(late, r.Told)
	}
}
