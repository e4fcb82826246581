package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// each is how many tellers there are at each broker: not all of their requests are
	// with whoever dies.
	each = 2
	// tellEvery is how often one tells something.
	tellEvery = 100 * time.Millisecond
	// refusedIn is when a request to store something is refused at the latest, and
	// answerIn when it counts as lost.
	refusedIn = 10 * time.Second
	answerIn  = 12 * time.Second
	// mostTold bounds what one tells: all of it is listed in the end.
	mostTold = 5000
)

// An attempt is one request to put something into the queue.
type attempt struct {
	broker          int // by way of which, counted from 1
	asked, answered time.Time
	accepted        bool
	// lost: there was no answer at all.
	lost bool
}

// A teller tells an agent that nobody is something again and again, by way of one broker.
type teller struct {
	broker   int
	agent    string
	nc       *nats.Conn
	attempts []attempt
	accepted map[string]bool // by key
}

// tellers are all of them.
type tellers struct {
	all   []*teller
	stop  context.CancelFunc
	work  sync.WaitGroup
	ended time.Time // when they ended
}

// tell connects tellers. They stay with their broker, and wait for it if it is dead.
func (r *run) tell(ctx context.Context, p string) (*tellers, error) {
	t := &tellers{stop: func() {}}
	for i := range each * Brokers {
		broker := i%Brokers + 1
		nc, err := nats.Connect(r.x.Field().Peer(broker), nats.Name("loadtest teller"), nats.MaxReconnects(-1),
			nats.ReconnectWait(tellEvery), nats.ReconnectBufSize(-1), nats.IgnoreDiscoveredServers(), nats.RetryOnFailedConnect(true))
		if err != nil {
			t.close()
			return nil, fmt.Errorf("connecting to broker %d: %w", broker, err)
		}
		t.all = append(t.all, &teller{broker: broker, agent: fmt.Sprintf("told-%s-%d", p, i), nc: nc, accepted: map[string]bool{}})
	}
	return t, ctx.Err()
}

// begin has all of them tell, until end.
func (t *tellers) begin(ctx context.Context) {
	ctx, t.stop = context.WithCancel(ctx)
	for _, one := range t.all {
		t.work.Go(func() { one.run(ctx) })
	}
}

// end waits for the requests that are under way.
func (t *tellers) end() {
	if t.ended.IsZero() {
		t.ended = time.Now()
	}
	t.stop()
	t.work.Wait()
}

func (t *tellers) close() {
	t.end()
	for _, one := range t.all {
		one.nc.Close()
	}
}

// attempts are those of all, by when they were answered.
func (t *tellers) attempts() (all []attempt) {
	for _, one := range t.all {
		all = append(all, one.attempts...)
	}
	slices.SortStableFunc(all, func(a, b attempt) int { return a.answered.Compare(b.answered) })
	return all
}

// run tells one thing until it is accepted, and then the next.
func (t *teller) run(ctx context.Context) {
	for n := uint64(1); n <= mostTold && measure.Pause(ctx, tellEvery); {
		if t.once(n) {
			n++
		}
	}
}

// once makes one request, which ends by itself: else nobody knew what was accepted.
func (t *teller) once(n uint64) bool {
	ctx, cancel := context.WithTimeout(context.Background(), answerIn)
	defer cancel()
	a := attempt{broker: t.broker, asked: time.Now()}
	var receipt schema.Receipt
	err := roles.Insist(ctx, t.nc, roles.Verb{Verb: schema.VerbInject, Agent: t.agent},
		schema.InjectRequest{Content: fmt.Sprint("number ", n), Producer: t.agent, Number: n}, &receipt)
	a.answered = time.Now()
	if err == nil {
		a.accepted, t.accepted[receipt.Key] = true, true
	} else if _, refused := errors.AsType[*schema.ControlError](err); !refused {
		a.lost = true
	}
	t.attempts = append(t.attempts, a)
	return a.accepted
}

// check asks whether all that was accepted waits; lost are the keys that do not.
func (t *tellers) check(ctx context.Context, nc *nats.Conn) (accepted int, lost []string, err error) {
	for _, one := range t.all {
		accepted += len(one.accepted)
		missing, err := one.missing(ctx, nc)
		if err != nil {
			return accepted, lost, err
		}
		lost = append(lost, missing...)
	}
	return accepted, lost, nil
}

// missing are keys that were accepted and do not wait. Who is asked may hear of the
// last ones a moment later.
func (t *teller) missing(ctx context.Context, nc *nats.Conn) (lost []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerIn)
	defer cancel()
	for {
		var a schema.PendingAnswer
		err = roles.Insist(ctx, nc, roles.Verb{Verb: schema.VerbPending, Agent: t.agent}, schema.PendingRequest{Limit: mostTold}, &a)
		if err == nil {
			there := map[string]bool{}
			for _, it := range a.Items {
				there[it.Key] = true
			}
			lost = nil
			for key := range t.accepted {
				if !there[key] {
					lost = append(lost, key)
				}
			}
			if len(lost) == 0 {
				return nil, nil
			}
		}
		if !measure.Pause(ctx, lookAgain) {
			return lost, err
		}
	}
}
