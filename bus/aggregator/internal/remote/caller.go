package remote

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// maxForgotten bounds the calls without a reply that are remembered. A late reply to one of them is
// counted by hook.
const maxForgotten = 4096

// unsorted bounds the replies that wait to be sorted. While a call waits, it sorts them, so they
// stay few.
const unsorted = 1 << 15

// maxRoutes bounds the subjects that are kept.
const maxRoutes = 4096

// caller sends batches to workers over the bus. It uses one subscription for all replies, because a
// request of the connection drops a late reply silently. No two calls have the same reply subject:
// a faulty worker may reply twice, and its second reply must not count for another call.
type caller struct {
	out   *bus.Publisher
	place string // of all replies, with a trailing dot
	// replied is the subscription to them.
	replied *nats.Subscription
	next    atomic.Uint64
	late    func(b *schema.Batch)
	// replies has the replies that are not sorted yet.
	replies chan *nats.Msg
	// envelopes and answers are reused after their calls have ended.
	envelopes bus.Envelopes
	answers   sync.Pool // of chan *nats.Msg, empty and with room for one

	mu        sync.Mutex
	routes    map[route]string          // subjects, made once
	waiting   map[string]chan *nats.Msg // by the last token of the reply subject
	forgotten map[string]*schema.Batch  // calls that were given up; bounded
}

var _ dispatch.Caller = (*caller)(nil)

func newCaller(nc *nats.Conn, late func(*schema.Batch)) (*caller, error) {
	c := &caller{
		out: bus.NewPublisher(nc), place: bus.Replies(), late: late, replies: make(chan *nats.Msg, unsorted),
		routes: make(map[route]string), waiting: make(map[string]chan *nats.Msg), forgotten: make(map[string]*schema.Batch),
	}
	sub, err := nc.ChanSubscribe(c.place+"*", c.replies)
	if err != nil {
		return nil, fmt.Errorf("subscribing to workers' replies: %w", err)
	}
	c.replied = sub
	return c, nil
}

// Call sends b to a worker, or to any worker of the pool if worker is empty, and waits for the
// reply.
func (c *caller) Call(ctx context.Context, pool, worker string, b *schema.Batch) (schema.BatchReply, error) {
	reply := c.place + strconv.FormatUint(c.next.Add(1), 36)
	token := reply[len(c.place):]
	answer, ok := c.answers.Get().(chan *nats.Msg)
	if !ok {
		answer = make(chan *nats.Msg, 1)
	}
	defer c.answers.Put(answer) // no other goroutine uses it after the call
	c.mu.Lock()
	subject, err := c.subject(route{pool, worker})
	if err == nil {
		c.waiting[token] = answer
	}
	c.mu.Unlock()
	if err != nil {
		return schema.BatchReply{}, err
	}
	if err := c.publish(subject, reply, b); err != nil {
		if !c.forget(token, nil) {
			<-answer // no worker got the batch, so this is not its reply; the next call must not find it
		}
		return schema.BatchReply{}, fmt.Errorf("sending the batch: %w", err)
	}
	for {
		select {
		case m := <-answer:
			return decodeReply(m, b.Room)
		case m := <-c.replies:
			c.reply(m)
		case <-ctx.Done():
			c.sort() // an answer that is here counts before any reason to stop waiting
			if !c.forget(token, b) {
				return decodeReply(<-answer, b.Room)
			}
			return schema.BatchReply{}, context.Cause(ctx)
		}
	}
}

// publish sends a batch.
func (c *caller) publish(subject, reply string, b *schema.Batch) error {
	e := c.envelopes.Take()
	defer c.envelopes.Put(e)
	m := e.Batch(subject, b)
	m.Reply = reply
	return c.out.Publish(m)
}

// sort hands out the replies that have arrived.
func (c *caller) sort() {
	for {
		select {
		case m := <-c.replies:
			c.reply(m)
		default:
			return
		}
	}
}

// decodeReply reads a reply, its outcomes into that room.
func decodeReply(m *nats.Msg, room []schema.Outcome) (r schema.BatchReply, err error) {
	r.Outcomes = room[:0]
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return r, dispatch.ErrNoWorker
	}
	if err := schema.Unmarshal(m.Data, &r); err != nil {
		return r, fmt.Errorf("cannot read the worker's reply: %w", err)
	}
	return r, nil
}

// route is where a batch goes; an empty worker is the pool's first contact.
type route struct{ pool, worker string }

// subject returns the subject of a route. The caller holds the lock.
func (c *caller) subject(r route) (s string, err error) {
	if s, ok := c.routes[r]; ok {
		return s, nil
	}
	if len(c.routes) >= maxRoutes {
		clear(c.routes) // workers come and go, and a broker does not learn of every end
	}
	if r.worker == "" {
		s, err = bus.FirstContactSubject(r.pool)
	} else {
		s, err = bus.RunSubject(r.pool, r.worker)
	}
	if err == nil {
		c.routes[r] = s
	}
	return s, err
}

// dropRoutes forgets the subjects of a worker that is gone.
func (c *caller) dropRoutes(worker string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.routes, func(r route, _ string) bool { return r.worker == worker })
}

// forget ends a call without a reply. It reports false if another goroutine has already taken the
// reply for the call. b is remembered to count a late reply.
func (c *caller) forget(token string, b *schema.Batch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[token] == nil {
		return false
	}
	delete(c.waiting, token)
	if b == nil {
		return true
	}
	if len(c.forgotten) >= maxForgotten {
		clear(c.forgotten)
	}
	c.forgotten[token] = &schema.Batch{Version: b.Version, Hooks: b.Hooks} // not its body, which may be large
	return true
}

// reply hands a reply to the call that waits for it. The waiting calls sort replies themselves: at
// best the reply is for the call that reads it, and no other goroutine has to wake. A reply for
// which no call waits is late. The caller counts it and never applies it.
func (c *caller) reply(m *nats.Msg) {
	token := strings.TrimPrefix(m.Subject, c.place)
	c.mu.Lock()
	answer, ok := c.waiting[token]
	delete(c.waiting, token)
	given := c.forgotten[token]
	delete(c.forgotten, token)
	c.mu.Unlock()
	switch {
	case ok:
		answer <- m
	case given != nil && len(m.Data) > 0:
		c.late(given)
	}
}

// reach tracks whether workers can be reached. After an outage, the connection for events may be
// back before the connection to the workers. An event taken then would find no worker, and hooks
// that are not fail-closed would be skipped.
type reach struct {
	nc *nats.Conn
	// back is called when the connection is restored, before events are taken.
	back func()
	// lost reports that the connection was lost and back has not returned since.
	lost atomic.Bool
}

// Ready reports whether they can be reached.
func (r *reach) Ready() bool { return !r.lost.Load() && r.nc.IsConnected() }

// Follow follows the connection until ctx ends.
func (r *reach) Follow(ctx context.Context) {
	changes := r.nc.StatusChanged(nats.CONNECTED, nats.DISCONNECTED, nats.RECONNECTING)
	defer r.nc.RemoveStatusListener(changes)
	for {
		select {
		case s := <-changes:
			if s != nats.CONNECTED {
				r.lost.Store(true)
				continue
			}
			r.back()
			r.lost.Store(false)
		case <-ctx.Done():
			return
		}
	}
}

// Wait returns when they can be reached, or the reason why ctx ended.
func (r *reach) Wait(ctx context.Context) error {
	changes := r.nc.StatusChanged(nats.CONNECTED)
	defer r.nc.RemoveStatusListener(changes)
	for !r.nc.IsConnected() {
		select {
		case <-changes:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if r.lost.Load() {
		r.back() // Follow may not have seen the change yet
	}
	return nil
}
