package aggregator

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// maxForgotten bounds what is remembered of calls that ended without an
// answer, so that an answer that comes after all can be counted by hook.
const maxForgotten = 4096

// caller asks workers over the bus. It keeps one inbox for all calls, because
// the connection's own request would drop an answer that comes late unseen.
type caller struct {
	nc     *nats.Conn
	inbox  string // with a trailing dot
	sub    *nats.Subscription
	next   atomic.Uint64
	late   func(b *schema.Batch)
	routes sync.Map // pool and worker -> subject

	mu        sync.Mutex
	waiting   map[string]chan *nats.Msg // by the last token of the reply subject
	forgotten map[string]*schema.Batch  // calls that were given up; bounded
}

var _ dispatch.Caller = (*caller)(nil)

func newCaller(nc *nats.Conn, late func(*schema.Batch)) (*caller, error) {
	c := &caller{
		nc: nc, inbox: nc.NewInbox() + ".", late: late,
		waiting: make(map[string]chan *nats.Msg), forgotten: make(map[string]*schema.Batch),
	}
	sub, err := nc.Subscribe(c.inbox+"*", c.reply)
	if err != nil {
		return nil, fmt.Errorf("subscribing to workers' replies: %w", err)
	}
	c.sub = sub
	return c, nil
}

// Call sends b to a worker, or to whoever serves the pool, and waits.
func (c *caller) Call(ctx context.Context, pool, worker string, b *schema.Batch) (schema.BatchReply, error) {
	subject, err := c.route(pool, worker)
	if err != nil {
		return schema.BatchReply{}, err
	}
	token := strconv.FormatUint(c.next.Add(1), 36)
	answer := make(chan *nats.Msg, 1)
	c.mu.Lock()
	c.waiting[token] = answer
	c.mu.Unlock()
	msg := bus.BatchMsg(subject, b)
	msg.Reply = c.inbox + token
	if err := c.nc.PublishMsg(msg); err != nil {
		c.forget(token, nil)
		return schema.BatchReply{}, fmt.Errorf("sending the batch: %w", err)
	}
	select {
	case m := <-answer:
		return decodeReply(m)
	case <-ctx.Done():
		c.forget(token, b)
		return schema.BatchReply{}, context.Cause(ctx)
	}
}

func decodeReply(m *nats.Msg) (r schema.BatchReply, err error) {
	if len(m.Data) == 0 && m.Header.Get("Status") == "503" {
		return r, dispatch.ErrNoWorker
	}
	if err := schema.Unmarshal(m.Data, &r); err != nil {
		return r, fmt.Errorf("the worker's reply can not be read: %w", err)
	}
	return r, nil
}

// route is the subject of a worker, or of a pool's first contact.
func (c *caller) route(pool, worker string) (string, error) {
	key := [2]string{pool, worker}
	if s, ok := c.routes.Load(key); ok {
		return s.(string), nil
	}
	s, err := bus.FirstContactSubject(pool)
	if worker != "" {
		s, err = bus.RunSubject(pool, worker)
	}
	if err == nil {
		c.routes.Store(key, s)
	}
	return s, err
}

// dropRoute forgets the subject of a worker that is gone.
func (c *caller) dropRoute(worker string) {
	c.routes.Range(func(k, _ any) bool {
		if k.([2]string)[1] == worker {
			c.routes.Delete(k)
		}
		return true
	})
}

// forget ends a call without an answer; b is remembered to count a late one.
func (c *caller) forget(token string, b *schema.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, token)
	if b == nil {
		return
	}
	if len(c.forgotten) >= maxForgotten {
		clear(c.forgotten)
	}
	c.forgotten[token] = &schema.Batch{Version: b.Version, Hooks: b.Hooks} // not its body, which may be large
}

// reply hands an answer to the call that waits for it. An answer nobody waits
// for is late: it is counted, never applied.
func (c *caller) reply(m *nats.Msg) {
	token := strings.TrimPrefix(m.Subject, c.inbox)
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
