package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
	"github.com/hookfabric/hookfabric/schema"
)

// A Ground has the members that faults affect.
type Ground interface {
	// Members returns the names of the members that faults can affect.
	Members() []string
	// Fault causes one fault at the member that it names and returns when its effects are
	// undone. When ctx ends, it undoes the fault at once and does not start a process
	// again.
	Fault(ctx context.Context, f Fault) error
}

// A Schedule causes faults at their times.
type Schedule struct {
	// Faults are the faults to cause, each at its own time.
	Faults []Fault
	// Seed draws the members of globs.
	Seed uint64
	// For limits the time with faults. No fault begins later, and a longer fault is cut
	// short; 0: until ctx ends.
	For time.Duration
	// Noted is called after each fault; nil: no callback. It must not block.
	Noted func(Done)
}

// Done is a completed fault at one member.
type Done struct {
	Fault Fault `json:"fault"`
	// From and Until are when the fault really began, and when its effects were undone: a
	// killed process was up again, a stopped one continued.
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// KindOf returns the kind of a member: its name without the number.
func KindOf(member string) string {
	kind, _, _ := strings.Cut(member, "-")
	return kind
}

// What returns the fault with the kind of its member.
func (d Done) What() string { return fmt.Sprintf("%s of a %s", d.Fault.Kind, KindOf(d.Fault.Member)) }

// Marks returns the faults as marks on a plot's axis of seconds since began, in their
// order.
func Marks(done []Done, began time.Time) []report.Mark {
	var marks []report.Mark
	for _, d := range done {
		marks = append(marks, report.Mark{X: d.From.Sub(began).Seconds(), Until: d.Until.Sub(began).Seconds(), Label: d.Fault.String(), Group: d.What()})
	}
	return marks
}

// run is a schedule in progress.
type run struct {
	*Schedule
	ground Ground
	began  time.Time

	mu    sync.Mutex // guards what follows
	turns map[string]chan struct{}
	done  []Done
	errs  []error
}

// Run causes the faults at the ground, and returns them in their order. When it returns,
// all of them are undone: every process runs, unless ctx ended first, and no network is
// affected. Faults at one member wait for each other. The first error ends the schedule.
func (s *Schedule) Run(ctx context.Context, ground Ground) ([]Done, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{Schedule: s, ground: ground, began: time.Now(), turns: map[string]chan struct{}{}}
	random := rand.New(rand.NewPCG(s.Seed, uint64(len(s.Faults))))
	inOrder := slices.SortedStableFunc(slices.Values(s.Faults), func(a, b Fault) int { return int(a.At - b.At) })
	var group sync.WaitGroup
	for _, f := range inOrder {
		if s.For > 0 && f.At.Std() >= s.For || !load.Pause(ctx, time.Until(r.began.Add(f.At.Std()))) || ctx.Err() != nil {
			break
		}
		members := Matching(f.Member, ground.Members())
		if len(members) == 0 {
			r.fail(fmt.Errorf("no member has the name %q", f.Member), cancel)
			break
		}
		f.Member = members[random.IntN(len(members))]
		group.Go(func() { r.fault(ctx, f, cancel) })
	}
	group.Wait()
	slices.SortStableFunc(r.done, func(a, b Done) int { return a.From.Compare(b.From) })
	return r.done, errors.Join(r.errs...)
}

// fault causes a fault at one member when it is that fault's turn.
func (r *run) fault(ctx context.Context, f Fault, cancel context.CancelCauseFunc) {
	turn := r.turn(f.Member)
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return
	}
	if r.For > 0 {
		left := r.For - time.Since(r.began)
		if left <= 0 {
			return
		}
		f.For = min(f.For, schema.Duration(left))
	}
	d := Done{Fault: f, From: time.Now()}
	err := r.ground.Fault(ctx, f)
	d.Until = time.Now()
	if err != nil {
		r.fail(fmt.Errorf("%v: %w", f, err), cancel)
		return
	}
	r.mu.Lock()
	r.done = append(r.done, d)
	r.mu.Unlock()
	if r.Noted != nil {
		r.Noted(d)
	}
}

// turn returns the lock that puts the faults at one member in sequence.
func (r *run) turn(member string) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.turns[member] == nil {
		r.turns[member] = make(chan struct{}, 1)
	}
	return r.turns[member]
}

func (r *run) fail(err error, cancel context.CancelCauseFunc) {
	r.mu.Lock()
	r.errs = append(r.errs, err)
	r.mu.Unlock()
	cancel(err)
}
