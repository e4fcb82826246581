package client_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/schema"
)

func TestMain(m *testing.M) { bustest.Main(m) }

// link is a connection provider whose connections can be cut.
type link struct {
	server *server.Server
	mu     sync.Mutex
	down   bool
	conns  []net.Conn
}

func (l *link) InProcessConn() (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, errors.New("the link is down")
	}
	c, err := l.server.InProcessConn()
	l.conns = append(l.conns, c)
	return c, err
}

// cut cuts every connection, and refuses new ones for a while.
func (l *link) cut(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for _, c := range l.conns {
		_ = c.Close()
	}
	l.conns = nil
	time.AfterFunc(d, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.down = false
	})
}

// question is one attempt at an event, as an aggregator receives it.
type question struct {
	bus.EventRequest
	at time.Time
	m  *nats.Msg
}

func (q *question) answer(d schema.Decision, reason string) {
	data, err := schema.Marshal(&schema.Verdict{Decision: d, Reason: reason})
	if err != nil {
		panic(err)
	}
	_ = q.m.Respond(data)
}

func (q *question) beat() {
	_ = q.m.RespondMsg(&nats.Msg{Header: nats.Header{schema.HeaderBeat: {"1"}}})
}

// fake is an aggregator with a client.
type fake struct {
	t      *testing.T
	link   *link
	client *client.Client
	mu     sync.Mutex
	asked  []*question
}

// newFake starts a bus and a client; serve starts the aggregator.
func newFake(t *testing.T, opt client.Options) *fake {
	t.Helper()
	f := &fake{t: t, link: &link{server: bustest.Start(t)}}
	opt.InProcess = f.link
	c, err := client.Connect(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	f.client = c
	t.Cleanup(func() {
		if n := c.Waiting(); n != 0 {
			t.Errorf("%d calls are still remembered", n)
		}
		c.Close()
	})
	return f
}

// serve answers every event with one function.
func (f *fake) serve(judge func(q *question)) {
	f.t.Helper()
	nc := bustest.Connect(f.t, f.link.server, "aggregator")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	take := func(m *nats.Msg) {
		m.Subject = strings.TrimSuffix(m.Subject, bus.AgainSuffix)
		r, err := bus.ParseEventMsg(m)
		if unread := strings.HasPrefix(string(m.Data), `"`); (err != nil) != unread {
			f.t.Errorf("%s: %v", m.Data, err)
		}
		q := &question{r, time.Now(), m}
		f.mu.Lock()
		f.asked = append(f.asked, q)
		f.mu.Unlock()
		judge(q)
	}
	_, err := nc.QueueSubscribe(bus.EventsWildcard, bus.QueueAggregators, take)
	_, againErr := nc.Subscribe(bus.EventsWildcard+bus.AgainSuffix, take)
	if err := errors.Join(err, againErr, nc.FlushWithContext(ctx)); err != nil {
		f.t.Error(err)
	}
}

// questions returns the events received so far.
func (f *fake) questions() []*question {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// ask asks with a deadline.
func (f *fake) ask(left time.Duration) (*schema.Verdict, error) {
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	v, err := f.client.Ask(ctx, event())
	if (v == nil) == (err == nil) {
		f.t.Errorf("verdict %+v and error %v", v, err)
	}
	if err != nil && ctx.Err() != nil {
		f.t.Errorf("the answer came when the caller had given up: %v", err)
	}
	return v, err
}

func event() *schema.Event {
	return &schema.Event{
		HookType: schema.PreToolUse, AgentID: "agent/1", SessionID: "s 1", ToolName: "mcp__données",
		ToolInput: []byte(`{"n":1}`),
	}
}
