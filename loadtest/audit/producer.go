package audit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/loadtest/roles"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// writers is how many items a producer sends at the same time.
	writers = 8
	// answerIn is how long a producer waits for a receipt before it sends again. One that stays
	// at a broker waits longer than brokers take to reject a request.
	answerIn     = 2 * time.Second
	stayAnswerIn = 12 * time.Second
	// reconnectEvery is how often one that stays looks for its broker.
	reconnectEvery = 100 * time.Millisecond
	// doubtFor is how long a producer that ends goes on to ask about items of which it
	// does not know whether they were accepted.
	doubtFor = 8 * time.Second
	// One item in repeatOneIn is sent once more after its receipt came, and one
	// in swapOneIn after the one that follows it.
	repeatOneIn = 20
	swapOneIn   = 20
)

// ProducerConfig is what a producer is to be started with.
type ProducerConfig struct {
	// NATS is the broker's server.
	NATS string `json:"nats"`
	// Broker has it stay connected to the broker of that number, which NATS names, and log each
	// attempt; 0: it uses any.
	Broker int `json:"broker,omitzero"`
	// Creds let it in; empty: it needs none.
	Creds string `json:"creds,omitzero"`
	// Log is its log; a producer that was killed goes on where that ends.
	Log string `json:"log"`
	// By is this process, Producer who it is in all its lives.
	By       string `json:"by"`
	Producer string `json:"producer"`
	// Agents get Each items from each source.
	Agents []string `json:"agents"`
	Each   int      `json:"each"`
	// Until is when all should be sent, in nanoseconds of this machine's clock.
	Until int64 `json:"until"`
}

// producer is one life of a producer.
type producer struct {
	nc     *nats.Conn
	broker int
	log    *Journal
	stop   context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex // guards failure
	failure error
}

// StartProducer sends what its log has no receipt for.
func StartProducer(ctx context.Context, c ProducerConfig) (*proc.Role, error) {
	done, err := received(c.Log)
	if err != nil {
		return nil, err
	}
	nc, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	log, err := OpenJournal(c.Log, c.By)
	if err != nil {
		nc.Close()
		return nil, err
	}
	p := &producer{nc: nc, broker: c.Broker, log: log}
	ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	for w := range writers {
		todo := c.todo(w, done)
		p.work.Go(func() { p.run(ctx, todo, time.Unix(0, c.Until)) })
	}
	return &proc.Role{Close: p.close}, nil
}

func (c *ProducerConfig) connect(ctx context.Context) (*nats.Conn, error) {
	name := "loadtest " + c.By
	if c.Broker == 0 {
		return bus.Connect(ctx, bus.Options{URL: c.NATS, Creds: c.Creds, Name: name, Retry: true})
	}
	nc, err := nats.Connect(c.NATS, nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectEvery),
		nats.ReconnectBufSize(-1), nats.IgnoreDiscoveredServers(), nats.RetryOnFailedConnect(true))
	if err != nil {
		return nil, fmt.Errorf("connecting to broker %d: %w", c.Broker, err)
	}
	return nc, nil
}

// received are the items for which a log has receipts.
func received(file string) (map[Item]bool, error) {
	r, err := OpenReader(file)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	done := map[Item]bool{}
	err = r.Next(func(e Entry) {
		if e.Receipt != nil {
			done[e.Receipt.Item] = true
		}
	})
	return done, err
}

// todo are a writer's items, without those that are done: lane by lane, as one
// agent and source must be one writer's, who sends them one after the other.
func (c *ProducerConfig) todo(writer int, done map[Item]bool) []Item {
	var all []Item
	for n := range uint64(c.Each) {
		for i, agent := range c.Agents {
			for j, source := range Sources() {
				if (i*len(Sources())+j)%writers != writer {
					continue
				}
				item := Item{Agent: agent, Source: source, Producer: c.Producer + "-" + source}
				if item.Number = swapped(n+1, uint64(c.Each), uint64(i)); !done[item] {
					all = append(all, item)
				}
			}
		}
	}
	return all
}

// swapped is the number at a place, counted from 1. Some neighbours change
// places, in every life of a producer the same: a number that comes late is no
// number that was used up.
func swapped(place, last, lane uint64) uint64 {
	pair := (place - 1) / 2
	switch {
	case (pair+lane)%swapOneIn != 0:
		return place
	case place%2 == 0:
		return place - 1
	case place < last:
		return place + 1
	}
	return place
}

// run sends the items, spread over the time that there is.
func (p *producer) run(ctx context.Context, todo []Item, until time.Time) {
	for i, item := range todo {
		left := time.Until(until)
		if ctx.Err() != nil || left > 0 && !measure.Pause(ctx, left/time.Duration(len(todo)-i)) {
			return
		}
		if err := p.send(ctx, item); err != nil {
			p.fail(err)
			return
		}
		if rand.IntN(repeatOneIn) == 0 {
			if err := p.send(ctx, item); err != nil {
				p.fail(err)
				return
			}
		}
	}
}

// send sends an item until there is a receipt, or none will ever be, and logs
// that. It returns an error if ctx ended long ago, or the log cannot be written.
func (p *producer) send(ctx context.Context, item Item) error {
	// A producer that ends waits for the receipt all the same: else the item may be
	// handed over, and no log says that it was accepted.
	ctx, cancel := lasting(ctx, doubtFor)
	defer cancel()
	to, request := roles.Verb{Verb: schema.VerbInject, Agent: item.Agent}, item.request()
	for try := 1; ; try++ {
		var receipt schema.Receipt
		err := p.once(ctx, to, request, &receipt)
		if err == nil {
			return p.log.Write(Entry{Receipt: &Receipt{
				Item: item, Sequence: receipt.Sequence, Duplicate: receipt.Duplicate, Tries: try,
			}})
		}
		if why := forGood(err); why != "" {
			return p.log.Write(Entry{Receipt: &Receipt{Item: item, Tries: try, Refused: why}})
		}
		if !measure.Pause(ctx, 20*time.Millisecond+rand.N(180*time.Millisecond)) {
			return context.Cause(ctx)
		}
	}
}

// lasting is a context that ends so long after another one.
func lasting(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(d, cancel)
		context.AfterFunc(longer, func() { t.Stop() })
	})
	return longer, func() { stop(); cancel() }
}

func (p *producer) once(ctx context.Context, to roles.Verb, request, receipt any) error {
	if p.broker == 0 {
		ctx, cancel := context.WithTimeout(ctx, answerIn)
		defer cancel()
		return roles.Insist(ctx, p.nc, to, request, receipt)
	}
	ctx, cancel := context.WithTimeout(ctx, stayAnswerIn)
	defer cancel()
	a := Attempt{Broker: p.broker, Asked: time.Now()}
	err := roles.Insist(ctx, p.nc, to, request, receipt)
	_, rejected := errors.AsType[*schema.ControlError](err)
	a.Answered, a.Accepted, a.Lost = time.Now(), err == nil, err != nil && !rejected
	p.fail(p.log.Write(Entry{Attempt: &a}))
	return err
}

// forGood is why an item will never be accepted; empty: it may be.
func forGood(err error) string {
	ce, ok := errors.AsType[*schema.ControlError](err)
	if !ok {
		return ""
	}
	switch ce.Code {
	case schema.CodeUnavailable, schema.CodeInternal:
		return ""
	}
	return fmt.Sprintf("%s: %s", ce.Code, ce.Message)
}

func (p *producer) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failure == nil && !errors.Is(err, context.Canceled) {
		p.failure = err
	}
}

func (p *producer) close() error {
	p.stop()
	p.work.Wait()
	p.nc.Close()
	return errors.Join(p.failure, p.log.Close())
}
