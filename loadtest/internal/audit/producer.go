package audit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/loadtest/internal/roles"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// writers is how many items a producer sends at the same time.
	writers = 8
	// answerIn is how long a producer waits for a receipt before it sends again. One that stays
	// at a broker waits longer than brokers take to reject a request.
	answerIn     = 2 * time.Second
	stayAnswerIn = 12 * time.Second
	// reconnectEvery is the interval between attempts to reach the broker that the producer
	// stays at.
	reconnectEvery = 100 * time.Millisecond
	// doubtFor is how long an ending producer continues to ask about items that may have
	// been accepted.
	doubtFor = 8 * time.Second
	// One item in repeatOneIn is sent again after its receipt. One in swapOneIn is sent
	// after the item that follows it.
	repeatOneIn = 20
	swapOneIn   = 20
)

// ProducerConfig configures a producer.
type ProducerConfig struct {
	// NATS is the URL of the broker's server.
	NATS string `json:"nats"`
	// Broker is the number of the broker in NATS that the producer stays connected to, and
	// it logs each attempt; 0: it uses any broker.
	Broker int `json:"broker,omitzero"`
	// Creds is the file of its credentials; empty: the server needs none.
	Creds string `json:"creds,omitzero"`
	// Log is its log. A producer continues where the log of a killed one ends.
	Log string `json:"log"`
	// By is the name of this process. Producer is its name in all its lives.
	By       string `json:"by"`
	Producer string `json:"producer"`
	// Agents get Each items from each source.
	Agents []string `json:"agents"`
	Each   int      `json:"each"`
	// Until is when all items should be sent, in nanoseconds of this machine's clock.
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

// StartProducer sends the items without a receipt in its log.
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

// received returns the items with a receipt in a log.
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

// todo returns a writer's items without those in done, lane by lane. One writer sends all
// items of an agent and source, one after the other.
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

// swapped returns the number at a place, counted from 1. Some neighbours change places, the
// same in every life of a producer. So a late number does not mean that the number was
// used.
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

// run sends the items, spread over the available time.
func (p *producer) run(ctx context.Context, todo []Item, until time.Time) {
	for i, item := range todo {
		left := time.Until(until)
		if ctx.Err() != nil || left > 0 && !load.Pause(ctx, left/time.Duration(len(todo)-i)) {
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

// send sends an item until it gets a receipt or a permanent rejection, and logs that. It
// returns an error if doubtFor has passed since ctx ended, or if it cannot write the log.
func (p *producer) send(ctx context.Context, item Item) error {
	// An ending producer still waits for the receipt. Otherwise the item may be handed over
	// although no log says that it was accepted.
	ctx, cancel := lasting(ctx, doubtFor)
	defer cancel()
	to, request := roles.Verb{Verb: schema.VerbInject, Agent: item.Agent}, item.request()
	for {
		var receipt schema.Receipt
		err := p.once(ctx, to, request, &receipt)
		if err == nil {
			return p.log.Write(Entry{Receipt: &Receipt{Item: item, Sequence: receipt.Sequence, Duplicate: receipt.Duplicate}})
		}
		if why := forGood(err); why != "" {
			return p.log.Write(Entry{Receipt: &Receipt{Item: item, Refused: why}})
		}
		if !load.Pause(ctx, 20*time.Millisecond+rand.N(180*time.Millisecond)) {
			return context.Cause(ctx)
		}
	}
}

// lasting returns a context that ends d after ctx.
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

// forGood returns why an item will never be accepted; empty: it may be accepted later.
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

// ops is a source of the load test; the others are the fabric's.
const ops = "ops"

// Sources returns the sources of each producer, for each agent.
func Sources() []string { return []string{schema.SourceHuman, schema.SourceBackground, ops} }

// request returns a producer's request for the item, which is always the same.
func (i Item) request() schema.InjectRequest {
	r := schema.InjectRequest{Source: i.Source, Producer: i.Producer, Number: i.Number}
	text := fmt.Sprintf("item=%s/%s/%s/%d; is for you to read.", i.Agent, i.Source, i.Producer, i.Number)
	if i.Number%2 == 0 {
		r.Strategy = schema.UserMessage
	}
	if i.Source == schema.SourceBackground {
		r.Background = &schema.BackgroundResult{ID: fmt.Sprintf("job-%d", i.Number), Tool: "build", Status: "completed", Result: text}
		return r
	}
	r.Content = text
	return r
}

// A finder finds the items in a text.
type finder struct{ like *regexp.Regexp }

func newFinder() finder {
	return finder{like: regexp.MustCompile(`item=([\w-]+)/([\w-]+)/([\w-]+)/([0-9]+);`)}
}

// items returns the items in the injections' texts, in their order.
func (f finder) items(injections []schema.Injection) []Item {
	var all []Item
	for _, in := range injections {
		for _, m := range f.like.FindAllStringSubmatch(in.Content, -1) {
			n, err := strconv.ParseUint(m[4], 10, 64)
			if err != nil {
				continue // no item has this number: the audit reports the item as lost
			}
			all = append(all, Item{Agent: m[1], Source: m[2], Producer: m[3], Number: n})
		}
	}
	return all
}
