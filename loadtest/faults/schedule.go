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

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/schema"
)

// A Ground is where faults are done.
type Ground interface {
	// Members are the names of those that faults can be done to.
	Members() []string
	// Fault does one fault to the members it names and returns when nothing is
	// left of it. A context that ends undoes it at once, and starts nobody again.
	Fault(ctx context.Context, f Fault) error
}

// A Schedule does faults on time.
type Schedule struct {
	// Faults are what is to be done, each at its own time.
	Faults []Fault
	// Seed is what the members of globs are drawn by.
	Seed uint64
	// For is how long there are faults: none begins later, and those that last
	// are cut short; 0: for as long as the context lasts.
	For time.Duration
	// Noted hears of each fault when it is over; nil: nobody does. It must not block.
	Noted func(Done)
}

// Done is a fault that was done to one member.
type Done struct {
	Fault Fault `json:"fault"`
	// From and Until are when it really began, and when nothing was left of it:
	// a killed process was up again, a stopped one went on.
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// Mark is the fault on a plot's axis of seconds since began.
func (d Done) Mark(began time.Time) result.Mark {
	kind, _, _ := strings.Cut(d.Fault.Member, "-")
	return result.Mark{
		X: d.From.Sub(began).Seconds(), Until: d.Until.Sub(began).Seconds(), Label: d.Fault.String(),
		Group: fmt.Sprintf("%s of a %s", d.Fault.Kind, kind),
	}
}

// Marks are the faults on a plot's axis of seconds since began, in their order.
func Marks(done []Done, began time.Time) []result.Mark {
	var marks []result.Mark
	for _, d := range done {
		marks = append(marks, d.Mark(began))
	}
	return marks
}

// run is a schedule under way.
type run struct {
	*Schedule
	ground Ground
	began  time.Time
	group  sync.WaitGroup

	mu    sync.Mutex // guards what follows
	turns map[string]chan struct{}
	done  []Done
	errs  []error
}

// Run does the faults to the ground, and returns them in the order in which they
// were done. When it returns all of them are undone: every process runs, unless
// ctx ended first, and no network is touched any more. Faults to one member wait
// for each other. The first that goes wrong ends the schedule.
func (s *Schedule) Run(ctx context.Context, ground Ground) ([]Done, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{Schedule: s, ground: ground, began: time.Now(), turns: map[string]chan struct{}{}}
	random := rand.New(rand.NewPCG(s.Seed, uint64(len(s.Faults))))
	for _, next := range s.moments() {
		if !r.until(ctx, next) {
			break
		}
		members := next.fault.Pick(ground.Members(), random)
		if len(members) == 0 {
			r.fail(fmt.Errorf("no member has the name %q", next.fault.Member), cancel)
			break
		}
		for _, member := range members {
			f := next.fault
			f.Member = member
			r.group.Go(func() { r.fault(ctx, f, cancel) })
		}
	}
	r.group.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(r.done, func(a, b Done) int { return a.From.Compare(b.From) })
	return r.done, errors.Join(r.errs...)
}

// moment is when a fault is due.
type moment struct {
	at    time.Duration
	fault Fault
}

// moments hands out what is due, in the order of time. It ends with the last
// fault, or with the schedule's time.
func (s *Schedule) moments() func(yield func(int, moment) bool) {
	return func(yield func(int, moment) bool) {
		var due []moment
		for _, f := range s.Faults {
			due = append(due, moment{f.At.Std(), f})
		}
		for n := 0; len(due) > 0; n++ {
			slices.SortStableFunc(due, func(a, b moment) int { return int(a.at - b.at) })
			next := due[0]
			if s.For > 0 && next.at >= s.For || !yield(n, next) {
				return
			}
			due = due[1:]
			if every := next.fault.Every.Std(); every > 0 {
				due = append(due, moment{next.at + every, next.fault})
			}
		}
	}
}

// until waits until the fault is due, and reports whether there is a point in it still.
func (r *run) until(ctx context.Context, next moment) bool {
	return measure.Pause(ctx, time.Until(r.began.Add(next.at))) && ctx.Err() == nil
}

// fault does a fault to one member when that has its turn.
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
		if f.Kind.lasts() || f.For > 0 {
			f.For = schema.Duration(min(f.For.Std(), left))
		}
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

// turn is what the faults to one member go through one by one.
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
