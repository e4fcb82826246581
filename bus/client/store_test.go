package client_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

const theFabric = "f-test"

// store is an aggregator with a queue of one agent, as simple as can be.
type store struct {
	*fake

	mu      sync.Mutex
	fabric  string
	items   []schema.Injection // those not acknowledged
	leases  map[string]lease
	objects map[string][]byte
	spaces  []schema.Workspace
	restart *schema.Restart
	silent  bool // acknowledgements of questions are not confirmed
	requests
}

type lease struct {
	seqs []uint64
	end  time.Time
}

// requests are the control requests that came, and what is to become of them.
type requests struct {
	acks    []schema.AckRequest
	when    []time.Duration // after start
	fetches int
	drains  []schema.DrainRequest
	start   time.Time
	answer  func(verb string, m *nats.Msg) bool // true: it was answered, or is to be lost
}

func newStore(t *testing.T, opt client.Options) *store {
	t.Helper()
	s := &store{fake: newFake(t, opt), fabric: theFabric, leases: map[string]lease{}, objects: map[string][]byte{}}
	s.start = time.Now()
	s.serve(func(q *question) { s.judge(q) })
	nc := bustest.Connect(t, s.line.server, "controls")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := nc.QueueSubscribe(bus.ControlWildcard, bus.QueueAggregators, s.control); err != nil {
		t.Fatal(err)
	}
	if err := nc.FlushWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	return s
}

// put puts items into the queue.
func (s *store) put(items ...schema.Injection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = append(s.items, items...)
}

// object is content outside of the verdict.
func (s *store) object(content string) *schema.Object {
	sum := sha256.Sum256([]byte(content))
	o := schema.Object{Digest: "sha256-" + hex.EncodeToString(sum[:]), Size: int64(len(content))}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[o.Digest] = []byte(content)
	return &o
}

// judge answers a question with what is due.
func (s *store) judge(q *question) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := &schema.Verdict{Decision: schema.Continue, Fabric: s.fabric, Workspaces: s.spaces, Restart: s.restart}
	s.done(q.Acks)
	if !s.silent {
		v.Acked = q.Acks
	}
	v.Injections = s.claim(q.ID)
	data, err := schema.Marshal(v)
	if err != nil {
		s.t.Error(err)
	}
	_ = q.m.Respond(data)
}

// claim leases what is due to an event. What is leased to another one holds
// nothing back here: only the client is looked at.
func (s *store) claim(event string) (due []schema.Injection) {
	now := time.Now()
	var leased []uint64
	for e, l := range s.leases {
		if e != event && l.end.After(now) {
			leased = append(leased, l.seqs...)
		} else if e != event {
			delete(s.leases, e)
		}
	}
	var seqs []uint64
	for _, in := range s.items {
		if !slices.Contains(leased, in.Sequence) {
			due, seqs = append(due, in), append(seqs, in.Sequence)
		}
	}
	if len(seqs) > 0 {
		s.leases[event] = lease{seqs, now.Add(30 * time.Second)}
	}
	return due
}

func (s *store) done(events []string) {
	for _, e := range events {
		l := s.leases[e]
		delete(s.leases, e)
		s.items = slices.DeleteFunc(s.items, func(in schema.Injection) bool { return slices.Contains(l.seqs, in.Sequence) })
	}
}

func (s *store) control(m *nats.Msg) {
	verb := strings.Split(m.Subject, ".")[3]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answer != nil && s.answer(verb, m) {
		return
	}
	switch verb {
	case schema.VerbAck:
		s.ack(m)
	case schema.VerbFetch:
		s.fetch(m)
	case schema.VerbDrain:
		s.drain(m)
	}
}

func (s *store) respond(m *nats.Msg, answer any) {
	data, err := schema.Marshal(answer)
	if err != nil {
		s.t.Error(err)
	}
	_ = m.Respond(data)
}

func (s *store) read(m *nats.Msg, into any) {
	if err := schema.Unmarshal(m.Data, into); err != nil {
		s.t.Error(err)
	}
}

func (s *store) ack(m *nats.Msg) {
	var r schema.AckRequest
	s.read(m, &r)
	s.acks, s.when = append(s.acks, r), append(s.when, time.Since(s.start))
	for _, e := range r.Events {
		if l, ok := s.leases[e]; r.Hold && ok {
			l.end = time.Now().Add(30 * time.Second)
			s.leases[e] = l
		}
	}
	if !r.Hold && r.Fabric == s.fabric {
		s.done(r.Events)
	}
	s.respond(m, struct{}{})
}

func (s *store) fetch(m *nats.Msg) {
	var r schema.FetchRequest
	s.read(m, &r)
	s.fetches++
	data := s.objects[r.Digest]
	if data == nil {
		refuse(m, schema.CodeNotFound, "there is no such object")
		return
	}
	s.respond(m, &schema.FetchAnswer{Data: data[r.Offset:min(int64(len(data)), r.Offset+1<<20)], Size: int64(len(data))})
}

func (s *store) drain(m *nats.Msg) {
	var r schema.DrainRequest
	s.read(m, &r)
	s.drains = append(s.drains, r)
	d := &schema.DrainAnswer{Fabric: s.fabric, EventID: r.EventID, Injections: s.claim(r.EventID), Workspaces: s.spaces}
	var texts []string
	for _, in := range d.Injections {
		texts = append(texts, in.Content)
	}
	d.Content = strings.Join(texts, "\n")
	s.respond(m, d)
}

// refuse answers a control request with an error.
func refuse(m *nats.Msg, code, message string) {
	_ = m.RespondMsg(&nats.Msg{
		Header: nats.Header{schema.HeaderServiceError: {message}, schema.HeaderServiceErrorCode: {code}},
		Data:   []byte(`{"code":"` + code + `","message":"` + message + `"}`),
	})
}

// said are the acknowledgements that came by requests of their own.
func (s *store) said() []schema.AckRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.acks)
}

// item is a queued text.
func item(seq uint64, content string) schema.Injection {
	return schema.Injection{Content: content, Strategy: schema.ToolResult, Source: schema.SourceHuman, Sequence: seq}
}

// must is a verdict that has to come.
func (s *store) must() *schema.Verdict {
	s.t.Helper()
	v, err := s.fake.ask(time.Minute)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// contents are the texts of a verdict.
func contents(v *schema.Verdict) (texts []string) {
	for _, in := range v.Injections {
		texts = append(texts, in.Content)
	}
	return texts
}
