package notice

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/faults"
	"github.com/hookfabric/hookfabric/loadtest/internal/field"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/schema"
)

// A loss is one way to lose a process.
type loss struct {
	name, title string
	budget      time.Duration
	// server means a separate NATS server process. Without it the only broker contains the
	// server.
	server           bool
	brokers, workers int
	// happen causes the loss once.
	happen func(*stand, context.Context) (sample, error)
}

func losses() []loss {
	return []loss{
		{"crash", "a worker's crash, embedded server", bench.NoticeCrash, false, 1, 2, (*stand).killed},
		{"crash-external", "a worker's crash, external server", bench.NoticeLoss, true, 1, 2, (*stand).killed},
		{"hang", "a worker's hang", bench.NoticeLoss, false, 1, 2, (*stand).stopped},
		{"aggregator", "an aggregator's loss", bench.NoticeLoss, true, 2, 1, (*stand).bereft},
	}
}

// A sample is the result of one loss.
type sample struct {
	// noticed is the time until the hook started again; 0: it did not.
	noticed time.Duration
	answers []answer
}

// killed kills the worker that has a call.
func (s *stand) killed(ctx context.Context) (sample, error) {
	got, who, err := s.without(ctx, func(v *faults.Victim) error { return v.Kill() })
	if err != nil {
		return got, err
	}
	return got, who.Start(ctx)
}

// stopped stops the worker that has a call until another one has answered.
func (s *stand) stopped(ctx context.Context) (got sample, err error) {
	stopped, thaw := context.WithCancel(ctx)
	over := make(chan error, 1)
	got, _, err = s.without(ctx, func(v *faults.Victim) error {
		go func() {
			over <- v.Suffer(stopped, faults.Fault{Kind: faults.Stop, Member: v.Name, For: schema.Duration(3 * patience)})
		}()
		return nil
	})
	thaw()
	if err != nil {
		return got, err
	}
	return got, <-over
}

// told is the answer of a worker.
type told struct {
	by     *faults.Victim
	begins []Begin
	err    error
}

// without makes a call and does the fault to the worker that has it. The other worker must
// then start the hook.
func (s *stand) without(ctx context.Context, fault func(*faults.Victim) error) (got sample, who *faults.Victim, err error) {
	c, err := s.ask(ctx, 1)
	if err != nil {
		return got, nil, err
	}
	all := make(chan told, len(s.workers))
	for _, v := range s.workers {
		go func() {
			begins, err := c.begun(ctx, v, 1)
			all <- told{v, begins, err}
		}()
	}
	first := <-all
	someTime(ctx)
	at := time.Now()
	if first.err == nil && len(first.begins) > 0 {
		err = fault(first.by)
	}
	second := <-all
	got.answers = c.all()
	if err = errors.Join(err, first.err, second.err); err != nil {
		return got, nil, err
	}
	if len(first.begins) == 0 {
		return got, nil, fmt.Errorf("no worker started the hook within %v", patience)
	}
	if len(second.begins) > 0 {
		got.noticed = since(at, second.begins[0])
	}
	return got, first.by, nil
}

// someTime waits for a random part of the heartbeat interval: outside tests too, the age of
// the last heartbeat at a loss is random.
func someTime(ctx context.Context) { load.Pause(ctx, rand.N(schema.BeatEvery)) }

// since returns how long after a moment b began.
func since(at time.Time, b Begin) time.Duration { return time.Unix(0, b.At).Sub(at) }

const (
	// together is the number of calls in flight when a broker is lost. It is random which
	// broker has which call.
	together = 8
	// draws is the number of tries to find the lost broker with calls.
	draws = 3
)

// bereft kills a broker that has calls. The client asks for each of them again. The figure
// is the time until the last of them, because until then a caller waits.
func (s *stand) bereft(ctx context.Context) (got sample, err error) {
	for range draws {
		more, err := s.bereftOnce(ctx)
		if err != nil {
			return got, err
		}
		got.noticed, got.answers = more.noticed, append(got.answers, more.answers...)
		if got.noticed > 0 {
			break
		}
		if err := s.ready(ctx); err != nil {
			return got, err
		}
	}
	return got, nil
}

func (s *stand) bereftOnce(ctx context.Context) (got sample, err error) {
	c, err := s.ask(ctx, together)
	if err != nil {
		return got, err
	}
	worker, broker := s.workers[0], s.field.Member(field.Numbered(field.Broker, 1))
	if _, err := c.begun(ctx, worker, together); err != nil {
		return got, err
	}
	someTime(ctx)
	at := time.Now()
	if err := broker.Kill(); err != nil {
		return got, err
	}
	got.answers = c.all()
	begins, err := c.begun(ctx, worker, 0)
	if err != nil {
		return got, err
	}
	got.noticed = lastAgain(at, begins)
	return got, broker.Start(ctx)
}

// lastAgain returns how long after a moment the last repeated event began; 0: no event was
// repeated. begins is in the order of time.
func lastAgain(at time.Time, begins []Begin) (last time.Duration) {
	seen := map[string]bool{}
	for _, b := range begins {
		if seen[b.Event] {
			last = since(at, b)
		}
		seen[b.Event] = true
	}
	return last
}
