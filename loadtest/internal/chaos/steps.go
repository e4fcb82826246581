package chaos

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/field"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// pause is the time without a fault before a part's first step, and after each.
	pause = 2 * time.Second
	// up is how long a broker may take to stop in order and to start again, and back how long a
	// load waits for the complete state. If that takes longer, another load follows.
	up   = 6 * time.Second
	back = 10 * time.Second
	// tail is how long a load lasts after its last step.
	tail = 4 * time.Second
)

// A step is a fault, and the state of the cluster around it.
type step struct {
	faults.Done
	// leads is how many of the streams its broker led, and queue whether that of the messages
	// was one of them.
	leads, of int
	queue     bool
	// whole is how long after the fault all brokers had the complete state; 0: they did not
	// within settleIn, and lacking is true, or the run was interrupted.
	whole   time.Duration
	lacking bool
}

// A change is a configuration that an operator applied.
type change struct {
	asked, active time.Time
	version       uint64 // 0: it never became active
}

// steps returns the faults of a part. A fault without a member affects the leader of the
// queue.
func (r *cluster) steps(p scenario.Part) (all []faults.Fault) {
	for _, k := range p.Faults {
		f := faults.Fault{Kind: k, For: cmp.Or(p.Away, r.scenario.Cluster.Away)}
		if k == faults.Restart {
			f.For = 0
		}
		if !p.Each {
			all = append(all, f)
			continue
		}
		for n := range r.scenario.Fabric.Brokers {
			f.Member = field.Numbered(field.Broker, n+1)
			all = append(all, f)
		}
	}
	return all
}

// takes returns how long a fault may take until its broker is up again.
func takes(f faults.Fault) time.Duration {
	if f.Kind == faults.Kill || f.Kind == faults.Restart {
		return f.For.Std() + up
	}
	return f.For.Std()
}

// duration returns the duration of a load for the given faults.
func duration(all []faults.Fault) time.Duration {
	d := pause + tail
	for _, f := range all {
		d += takes(f) + back + pause
	}
	return d
}

// script causes the faults in a load that ends at a time.
func (r *cluster) script(ctx context.Context, one *partLoad, all []faults.Fault, end time.Time) error {
	if !load.Pause(ctx, pause) {
		return nil
	}
	g, together := errgroup.WithContext(ctx)
	over, stop := context.WithCancel(together)
	if one.Changes {
		g.Go(func() error { return r.changes(together, over, one) })
	}
	g.Go(func() error {
		defer stop()
		return r.eachStep(together, one, all, end)
	})
	return g.Wait()
}

// eachStep causes one fault after the other. Each waits for the complete state after the one
// before. It stops if the time until the load's end is too short for the next one.
func (r *cluster) eachStep(ctx context.Context, one *partLoad, all []faults.Fault, end time.Time) error {
	for _, f := range all {
		if time.Until(end) < takes(f)+back {
			fmt.Fprintf(r.stage.Live, "%v follows under another load\n", f)
			return nil
		}
		s, err := r.step(ctx, one, f)
		if err != nil {
			return err
		}
		one.steps = append(one.steps, s)
		if s.whole == 0 || !load.Pause(ctx, pause) {
			return nil
		}
	}
	return nil
}

// step causes one fault, and waits for the complete state.
func (r *cluster) step(ctx context.Context, one *partLoad, f faults.Fault) (step, error) {
	by, leader, err := r.leaders(ctx)
	if err != nil {
		return step{}, fmt.Errorf("reading the leaders of the streams: %w", err)
	}
	f.Member = cmp.Or(f.Member, leader)
	s := step{Done: faults.Done{Fault: f}, leads: by[f.Member], queue: leader == f.Member}
	for _, n := range by {
		s.of += n
	}
	fmt.Fprintf(r.stage.Live, "%v, leader of %d of %d streams\n", s.Fault, s.leads, s.of)
	if one.Freeze {
		return s, r.freezes(ctx, one, &s)
	}
	if err := r.cause(ctx, &s); err != nil {
		return s, err
	}
	r.settle(ctx, &s)
	return s, nil
}

func (r *cluster) cause(ctx context.Context, s *step) error {
	s.From = time.Now()
	err := r.x.Field().Fault(ctx, s.Fault)
	s.Until = time.Now()
	r.stage.Live.Fault(string(s.Fault.Kind))
	return err
}

const (
	// changeEvery is the pause after a configuration became active.
	changeEvery = time.Second
	// changeIn limits one request: brokers take up to a minute. changedIn limits all requests
	// for one configuration.
	changeIn  = 70 * time.Second
	changedIn = 2 * changeIn
)

// changes applies one configuration after the other until over, each until it is active.
func (r *cluster) changes(ctx, over context.Context, one *partLoad) error {
	text, err := os.ReadFile(filepath.Join(r.stage.Dir, "hooks.yaml"))
	if err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	for load.Pause(over, changeEvery) {
		r.applied++
		// A hook that matches no event of the load makes each configuration a new one.
		source := strings.Replace(string(text), "hooks:\n", fmt.Sprintf("hooks:\n  SessionEnd:\n    - {name: change-%d, type: builtin, handler: allow}\n", r.applied), 1)
		req := schema.ConfigRequest{Action: schema.ActionApply, File: "hooks.yaml", Dir: r.stage.Dir, Source: source}
		c := change{asked: time.Now()}
		for c.version == 0 && time.Since(c.asked) < changedIn {
			if c.version, err = r.apply(ctx, &req); err != nil && !load.Pause(ctx, lookAgain) {
				return fmt.Errorf("applying configuration %d: %w", r.applied, err)
			}
		}
		c.active = time.Now()
		one.changes = append(one.changes, c)
	}
	return nil
}

// apply sends one request. The caller repeats a request that is lost with its broker.
func (r *cluster) apply(ctx context.Context, req *schema.ConfigRequest) (uint64, error) {
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
