package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/fleet"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// messageRate is how many messages per second the producers send together.
const messageRate = 60

// cluster is a run with faults in a cluster.
type cluster struct {
	scenario *scenario.Scenario
	stage    fleet.Stage
	x        *fleet.Session
	nc       *nats.Conn // to any broker
	loads    []*partLoad
	applied  int // configurations
}

// partLoad is the result of one load of a part. A part has several if its brokers took so long
// to get the complete state that the load ended before the last fault.
type partLoad struct {
	scenario.Part
	load     int // counted from 1
	measured *fleet.Measured
	steps    []step
	changes  []change
	freeze   *frozen // nil: no agent was frozen
}

// RunCluster starts a cluster, and causes the faults of each part under a load of its own, so
// that clients are spread over all brokers again.
func RunCluster(ctx context.Context, s *scenario.Scenario, st fleet.Stage) (d *report.Document, err error) {
	x, err := fleet.Open(ctx, s, st)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	nc, err := bus.Connect(ctx, bus.Options{URL: x.Field().URL(), Name: "loadtest cluster"})
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	r := &cluster{scenario: s, stage: st, x: x, nc: nc}
	if why := r.settled(ctx); why != nil {
		return nil, fmt.Errorf("not all brokers had the complete state within %v: %w", settleIn, why)
	}
	for _, p := range s.Cluster.Parts {
		if st.Hosts == nil && p.CutsOff() {
			continue
		}
		whole, err := r.part(ctx, p)
		if err != nil && ctx.Err() != nil && len(r.loads) > 0 {
			break // the earlier parts are worth reporting
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		if !whole || ctx.Err() != nil {
			break
		}
	}
	return r.document(), nil
}

// part causes all faults of a part, in as many loads as that takes. It reports whether all
// brokers had the complete state after the last one.
func (r *cluster) part(ctx context.Context, p scenario.Part) (whole bool, err error) {
	left := r.steps(p)
	for load := 1; ctx.Err() == nil; load++ {
		one, err := r.play(ctx, &partLoad{Part: p, load: load}, left)
		if err != nil {
			return false, err
		}
		r.loads = append(r.loads, one)
		if len(one.steps) == 0 || slices.ContainsFunc(one.steps, func(s step) bool { return s.whole == 0 }) {
			return false, nil
		}
		if left = left[len(one.steps):]; len(left) == 0 {
			break
		}
	}
	return true, nil
}

// play puts the cluster under load, and causes as many of the faults as there is time for.
func (r *cluster) play(ctx context.Context, one *partLoad, left []faults.Fault) (*partLoad, error) {
	s := *r.scenario
	if one.Unnoticed() {
		s.Kind = scenario.Fleet // every call must get an answer
	}
	s.For = schema.Duration(duration(left).Round(time.Second))
	s.Messages = int(messageRate * s.For.Std().Seconds())
	r.x.Script = func(ctx context.Context, began time.Time) ([]faults.Done, error) {
		err := r.script(ctx, one, left, began.Add(s.For.Std()))
		var done []faults.Done
		for _, s := range one.steps {
			done = append(done, s.Done)
		}
		return done, err
	}
	var err error
	one.measured, err = r.x.Load(ctx, &s)
	return one, err
}
