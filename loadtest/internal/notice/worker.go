package notice

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// Worker is the role of a worker that reports when its hooks begin.
const Worker = "notice-worker"

// Roles returns the roles of this package.
func Roles() map[string]proc.Start { return map[string]proc.Start{Worker: proc.Started(startWorker)} }

const (
	// handler is the name of the only handler.
	handler = "refuse"
	// refused is the reason of the hook's denials, which no failure has.
	refused = "refused by the hook itself"
	// slots is how many hooks a worker runs at once: more than are ever in flight.
	slots = 64
)

// WorkerConfig configures such a worker.
type WorkerConfig struct {
	NATS string `json:"nats"`
	// Name is the worker's name.
	Name string `json:"name"`
	// Takes is how long the hook takes.
	Takes schema.Duration `json:"takes"`
}

// A Look asks a worker which hooks of some events have begun.
type Look struct {
	Events []string `json:"events"`
	// Want is how many must have begun before it answers; 0: it answers at once.
	Want int `json:"want"`
	// For limits how long it waits for them.
	For schema.Duration `json:"for"`
}

// A Begin records that the hook began for an event.
type Begin struct {
	Event string `json:"event"`
	// At is the time, in nanoseconds since 1970.
	At int64 `json:"at"`
}

// startWorker runs a worker whose hook is in Go.
func startWorker(ctx context.Context, c WorkerConfig) (*proc.Role, error) {
	b := &begins{takes: c.Takes.Std(), of: map[string][]int64{}, more: make(chan struct{})}
	runner := roles.Handlers{handler: func(string) workers.HandlerFunc { return b.refuse }}
	return roles.Work(ctx, bus.Options{URL: c.NATS}, workers.Options{
		Name: c.Name, Pools: []string{pool}, Capacity: slots, Runners: map[schema.Kind]workers.Runner{schema.Builtin: runner},
	}, proc.Asked(b.look))
}

// begins records when the hooks began.
type begins struct {
	takes time.Duration

	mu   sync.Mutex         // guards what follows
	of   map[string][]int64 // by event
	more chan struct{}      // closed at the next one
}

// refuse records that the hook began, waits, and denies the call.
func (b *begins) refuse(ctx context.Context, e *schema.Event) (schema.Result, error) {
	b.note(e.EventID, time.Now())
	if !load.Pause(ctx, b.takes) {
		return schema.Result{}, context.Cause(ctx)
	}
	return schema.Denied(refused), nil
}

func (b *begins) note(event string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.of[event] = append(b.of[event], at.UnixNano())
	close(b.more)
	b.more = make(chan struct{})
}

// look answers a [Look] with the hooks that began, in the order of time.
func (b *begins) look(ctx context.Context, l Look) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, l.For.Std())
	defer cancel()
	for {
		all, more := b.begun(l.Events)
		if len(all) >= l.Want {
			return all, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return all, nil
		}
	}
}

// begun returns when the hooks of those events began, and a channel that is closed when
// another one begins.
func (b *begins) begun(events []string) (all []Begin, more <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, event := range events {
		for _, at := range b.of[event] {
			all = append(all, Begin{Event: event, At: at})
		}
	}
	slices.SortFunc(all, func(a, b Begin) int { return int(a.At - b.At) })
	return all, b.more
}
