package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/field"
	"github.com/hookfabric/hookfabric/loadtest/fleet"
	"github.com/hookfabric/hookfabric/loadtest/lan"
	"github.com/hookfabric/hookfabric/loadtest/live"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// Brokers is how many there are: as few as can lose one.
const Brokers = 3

// The parts of a run.
const (
	rolling = "rolling" // restart one after the other
	change  = "change"  // and again, while configurations change
	kill    = "kill"
	stop    = "stop"
	part    = "part"
	oneWay  = "one-way"
	freeze  = "freeze"
	// brief is a kill and a cut, as tests do it.
	brief = "brief"
)

// Parts are the names of all parts, in their order.
func Parts() []string { return []string{rolling, change, kill, stop, part, oneWay, freeze} }

// Options say what is done, and under what load.
type Options struct {
	// Only are the parts that are done; none: all of them.
	Only []string
	// All has each fault done to every broker, one after the other, and not only to
	// the one that leads the queue of injections.
	All bool
	// Rate is how often per second all agents together use a tool.
	Rate float64
	// Away is how long a fault lasts; a cut during which agents are frozen lasts longer.
	Away time.Duration
	// Dir is an empty directory for what the processes keep.
	Dir string
	// Crew says how processes are started.
	Crew *proc.Crew
	// Lan is the hosts of the brokers, one for each; nil: all are on this one, and nobody is cut off.
	Lan *lan.Lan
	// Progress takes a line now and then; it must not be nil.
	Progress io.Writer
	// Live shows the load while it lasts; nil: nobody looks.
	Live *live.Run
}

// Thorough are the options of a run whose figures are meant to be read.
func Thorough() Options { return Options{All: true, Rate: 100, Away: 8 * time.Second} }

// Quick are the options of a run that only looks whether everything works.
func Quick() Options { return Options{Rate: 60, Away: 5 * time.Second} }

// Check says what is wrong with the options.
func (o *Options) Check() error {
	for _, p := range o.Only {
		if p != brief && !slices.Contains(Parts(), p) {
			return fmt.Errorf("unknown part %q; write one or more of %s", p, strings.Join(Parts(), ", "))
		}
	}
	switch {
	case !(o.Rate > 0 && o.Rate <= 100_000):
		return fmt.Errorf("--rate is %v; write at least 1 tool call per second", o.Rate)
	case o.Away < time.Second || o.Away > 10*time.Second:
		return fmt.Errorf("--away is %v; write 1s to 10s, because a broker that is cut off stops answering after 10s", o.Away)
	}
	return nil
}

// run is a run under way.
type run struct {
	*Options
	x       *fleet.Session
	nc      *nats.Conn // to any broker
	shown   []*shown
	applied int // configurations
}

// shown is what one load of a part showed: the first one, unless so much time went by
// until all brokers had everything again that it was over before the part's last fault.
type shown struct {
	part     string
	load     int // counted from 1
	measured *fleet.Measured
	steps    []step
	attempts []attempt
	told     time.Time // until when something was put into the queue
	lost     []string  // keys that were accepted and do not wait
	accepted int
	changes  []changing
	freeze   *frozen // nil: nobody was
}

// Run does all parts.
func Run(ctx context.Context, o Options) (d *result.Document, err error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	s := o.scenario()
	x, err := fleet.Open(ctx, s, fleet.Stage{Dir: o.Dir, Crew: o.Crew, Progress: o.Progress, Live: o.Live, Lan: o.Lan})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	nc, err := bus.Connect(ctx, bus.Options{URL: x.Field().URL(""), Name: "loadtest cluster"})
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	r := &run{Options: &o, x: x, nc: nc}
	if why := r.settled(ctx); why != nil {
		return nil, fmt.Errorf("not all brokers had the complete state within %v: %w", settleIn, why)
	}
	for _, p := range r.parts() {
		whole, err := r.part(ctx, s, p)
		if err != nil && ctx.Err() != nil && len(r.shown) > 0 {
			break // what was done before is worth reading
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		if !whole || ctx.Err() != nil {
			break
		}
	}
	return r.document()
}

// part does all faults of a part, in as many loads as that takes. It reports whether all
// brokers had everything again after the last one.
func (r *run) part(ctx context.Context, s *scenario.Scenario, p string) (whole bool, err error) {
	left := r.steps(p)
	for load := 1; ctx.Err() == nil; load++ {
		one, err := r.play(ctx, s, &shown{part: p, load: load}, left)
		if err != nil {
			return false, err
		}
		r.shown = append(r.shown, one)
		if len(one.steps) == 0 || !one.whole() {
			return false, nil
		}
		if left = left[min(len(one.steps), len(left)):]; len(left) == 0 {
			break
		}
	}
	return true, nil
}

// scenario is the fleet that the parts have in common.
func (o *Options) scenario() *scenario.Scenario {
	s := scenario.Default()
	s.Name, s.Kind, s.Rate = "cluster", scenario.Chaotic, o.Rate
	s.Fabric = scenario.Fabric{Kind: field.Local, Brokers: Brokers, Workers: 2, Slots: 64, Cluster: true}
	s.Agents, s.Connections, s.Drivers = 60, 12, 1
	s.Warm, s.Deadline = schema.Duration(time.Second), schema.Duration(10*time.Second)
	return &s
}

// parts are those that can be done, of those that are asked for.
func (r *run) parts() (all []string) {
	for _, p := range append(Parts(), brief) {
		if p == brief && !slices.Contains(r.Only, brief) || len(r.Only) > 0 && !slices.Contains(r.Only, p) || r.Lan == nil && cuts(p) {
			continue
		}
		all = append(all, p)
	}
	return all
}

// cuts reports whether brokers are cut off in a part.
func cuts(p string) bool { return p == part || p == oneWay || p == freeze || p == brief }

// play has the fabric under load while faults of a part are done, as many as there is time for.
func (r *run) play(ctx context.Context, common *scenario.Scenario, one *shown, left []faults.Fault) (*shown, error) {
	s := *common
	if one.part == rolling || one.part == change {
		s.Kind = scenario.Fleet // no call may notice, and no hook
	}
	s.For = schema.Duration(long(one.part, left).Round(time.Second))
	t, err := r.tell(ctx, fmt.Sprintf("%s-%d", one.part, one.load))
	if err != nil {
		return nil, err
	}
	r.x.Script = func(ctx context.Context, began time.Time) ([]faults.Done, error) {
		t.begin(ctx)
		defer t.end()
		err := r.script(ctx, one, left, began.Add(s.For.Std()))
		return one.done(), err
	}
	defer t.close()
	if one.measured, err = r.x.Load(ctx, &s); err != nil {
		return nil, err
	}
	one.attempts, one.told = t.attempts(), t.ended
	if one.measured.Early {
		return one, nil // who has just been cut off need not know all that was accepted
	}
	one.accepted, one.lost, err = t.check(ctx, r.nc)
	return one, err
}
