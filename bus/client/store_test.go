package client_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

const theFabric = "f-test"

// store is a fabric with a queue, and a client.
type store struct {
	*fake
	*bustest.Fabric
}

func newStore(t *testing.T, opt client.Options) *store {
	t.Helper()
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	s := &store{newFake(t, opt), bustest.NewFabric(theFabric)}
	s.serve(func(q *question) { bustest.Respond(q.m, s.Judge(q.EventRequest)) })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.ServeControl(ctx, bustest.Connect(t, s.link.server, "controls")); err != nil {
		t.Fatal(err)
	}
	return s
}

// acks returns the acknowledgements in requests of their own.
func (s *store) acks() []schema.AckRequest {
	s.Lock()
	defer s.Unlock()
	return slices.Clone(s.Acks)
}

// answers sets a function for control requests; nil: they are served.
func (s *store) answers(answer func(verb string, m *nats.Msg) bool) {
	s.Lock()
	defer s.Unlock()
	s.Answer = answer
}

// waiting counts the items without an acknowledgement.
func (s *store) waiting() int {
	s.Lock()
	defer s.Unlock()
	return len(s.Items)
}

// must returns a verdict, or fails the test.
func (s *store) must() *schema.Verdict {
	s.t.Helper()
	v, err := s.fake.ask(time.Minute)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// contents returns the texts of a verdict.
func contents(v *schema.Verdict) (texts []string) {
	for _, in := range v.Injections {
		texts = append(texts, in.Content)
	}
	return texts
}
