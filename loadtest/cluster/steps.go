package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/loadtest/faults"
	"github.com/hookfabric/hookfabric/loadtest/field"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// calm is how long nothing is wrong before a part's first step, and after each.
	calm = 2 * time.Second
	// up is how long it may take beside a fault that a broker ends in order and comes up,
	// and back how long a load has for all to have everything again. Where that takes
	// longer what is left of a part is done in a further load.
	up   = 6 * time.Second
	back = 10 * time.Second
	// quiet is how long a part goes on after its last step.
	quiet = 4 * time.Second
	// behindFor is how long a broker is cut off while agents are frozen: until after its
	// lease has lapsed, on which the freeze waits.
	behindFor = 25 * time.Second
)

// A step is a fault, and what was so when it began.
type step struct {
	faults.Done
	// leads is how many streams its broker led, of so many, and items whether that was
	// the one of injections.
	leads, of int
	items     bool
	// whole is how long after it all brokers had everything again; 0: they had not as long
	// as that was waited for, which lacking says, or an interrupt came first.
	whole   time.Duration
	lacking bool
}

// changing is a configuration that was applied.
type changing struct {
	asked, active time.Time
	version       uint64 // 0: it never did
	tries         int
}

// steps are the faults of a part.
func (r *run) steps(p string) (all []faults.Fault) {
	kinds := map[string][]faults.Kind{
		kill: {faults.Kill}, stop: {faults.Stop}, part: {faults.Part}, oneWay: {faults.Mute, faults.Deafen},
		rolling: {faults.Restart}, change: {faults.Restart}, brief: {faults.Kill, faults.Part},
	}[p]
	for _, k := range kinds {
		for n := range Brokers {
			f := faults.Fault{Kind: k, Member: field.Numbered(field.Broker, n+1), For: schema.Duration(r.Away)}
			if k == faults.Restart {
				f.For = 0
			}
			if all = append(all, f); !r.All && k != faults.Restart {
				all[len(all)-1].Member = "" // who leads then
				break
			}
		}
	}
	return all
}

// takes is how long a fault may take until its broker is there again.
func takes(f faults.Fault) time.Duration {
	if f.Kind == faults.Kill || f.Kind == faults.Restart {
		return f.For.Std() + up
	}
	return f.For.Std()
}

// long is how long a load must be for a part's faults.
func long(part string, all []faults.Fault) time.Duration {
	d := calm + quiet
	if part == freeze {
		return d + calm + behindFor + back
	}
	for _, f := range all {
		d += takes(f) + back + calm
	}
	return d
}

// script is what is done in a load that ends then.
func (r *run) script(ctx context.Context, one *shown, all []faults.Fault, end time.Time) error {
	if !measure.Pause(ctx, calm) {
		return nil
	}
	switch one.part {
	case freeze:
		return r.freezes(ctx, one)
	case change:
		over, stop := context.WithCancel(ctx)
		g, together := errgroup.WithContext(ctx)
		g.Go(func() error { return r.changes(together, over, one) })
		g.Go(func() error { defer stop(); return r.eachStep(together, one, all, end) })
		return g.Wait()
	}
	return r.eachStep(ctx, one, all, end)
}

// eachStep does faults, one when all is well after the other, as long as there is time
// for them before the load's end.
func (r *run) eachStep(ctx context.Context, one *shown, all []faults.Fault, end time.Time) error {
	for _, f := range all {
		if time.Until(end) < takes(f)+back {
			fmt.Fprintf(r.Progress, "%v comes under a further load\n", f)
			return nil
		}
		s, err := r.start(ctx, f)
		if err != nil {
			return err
		}
		if err := r.do(ctx, &s); err != nil {
			return err
		}
		r.settle(ctx, &s)
		one.steps = append(one.steps, s)
		if s.whole == 0 || !measure.Pause(ctx, calm) {
			return nil
		}
	}
	return nil
}

// start is a step that begins, with whoever leads then if nobody is named.
func (r *run) start(ctx context.Context, f faults.Fault) (step, error) {
	by, leader, err := r.led(ctx)
	if err != nil {
		return step{}, fmt.Errorf("reading the leaders of the streams: %w", err)
	}
	if f.Member == "" {
		f.Member = leader
	}
	s := step{Done: faults.Done{Fault: f}, leads: by[f.Member], items: leader == f.Member}
	for _, n := range by {
		s.of += n
	}
	return s, nil
}

// do does a step's fault.
func (r *run) do(ctx context.Context, s *step) error {
	fmt.Fprintf(r.Progress, "%v, leader of %d of %d streams\n", s.Fault, s.leads, s.of)
	s.From = time.Now()
	err := r.x.Field().Fault(ctx, s.Fault)
	s.Until = time.Now()
	r.Live.Fault(string(s.Fault.Kind))
	return err
}

const (
	// changeEvery is how long nothing changes after a configuration became active.
	changeEvery = time.Second
	// changeIn is how long one request may take: brokers give themselves a minute. In
	// changedIn it is active, however many it takes.
	changeIn  = 70 * time.Second
	changedIn = 2 * changeIn
)

// changes applies one configuration after the other until over, each until it is active.
func (r *run) changes(ctx, over context.Context, one *shown) error {
	text, err := os.ReadFile(filepath.Join(r.Dir, "hooks.yaml"))
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	for measure.Pause(over, changeEvery) {
		r.applied++
		c := changing{asked: time.Now()}
		req := schema.ConfigRequest{Action: schema.ActionApply, File: "hooks.yaml", Dir: r.Dir, Source: changed(string(text), r.applied)}
		for c.version == 0 && time.Since(c.asked) < changedIn {
			c.tries++
			if c.version, err = r.apply(ctx, &req); err != nil && !measure.Pause(ctx, lookAgain) {
				return fmt.Errorf("applying configuration %d: %w", r.applied, err)
			}
		}
		c.active = time.Now()
		one.changes = append(one.changes, c)
	}
	return nil
}

// changed is a configuration with a hook that nobody meets, another one each time.
func changed(text string, n int) string {
	return strings.Replace(text, "hooks:\n", fmt.Sprintf("hooks:\n  SessionEnd:\n    - {name: change-%d, type: builtin, handler: allow}\n", n), 1)
}

// apply is one request. One that is lost with its broker is asked again.
func (r *run) apply(ctx context.Context, req *schema.ConfigRequest) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, changeIn)
	defer cancel()
	var a schema.ConfigAnswer
	if err := roles.Control(ctx, r.nc, roles.Verb{Verb: "config"}, req, &a); err != nil {
		return 0, err
	}
	if a.Refused {
		return 0, fmt.Errorf("the broker rejected it: %v", a.Problems)
	}
	return a.Version, nil
}

// whole reports whether all brokers had everything again after each step.
func (one *shown) whole() bool {
	return !slices.ContainsFunc(one.steps, func(s step) bool { return s.whole == 0 })
}

// done are the steps as marks.
func (one *shown) done() (all []faults.Done) {
	for _, s := range one.steps {
		all = append(all, s.Done)
	}
	return all
}
