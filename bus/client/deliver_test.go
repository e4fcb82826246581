package client_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

func TestItemsDeliveredBeforeAreRemovedAndAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		lost := true
		s.answers(func(verb string, _ *nats.Msg) bool { return verb == schema.VerbAck && lost })
		s.Silent = true
		s.Put(bustest.Item(1, "one"))
		first := s.must()
		s.client.Handed(first.EventID)
		// The lease ends without a confirmation, and the item is delivered again.
		pass(31 * time.Second)
		s.Lock()
		clear(s.Leases)
		lost = false
		s.Unlock()
		again := s.must()
		if got := contents(again); len(got) != 0 {
			t.Errorf("it was delivered twice: %v", got)
		}
		if _, ok := s.client.Brought(again.EventID); ok {
			t.Error("an item is left to deliver")
		}
		pass(time.Minute)
		s.Lock()
		defer s.Unlock()
		if len(s.Items) != 0 || !slices.ContainsFunc(s.Acks, func(r schema.AckRequest) bool { return slices.Contains(r.Events, again.EventID) }) {
			t.Errorf("waiting: %v, acknowledged: %+v", s.Items, s.Acks)
		}
	})
}

func TestOnlyInjectionsWithoutNewItemsAreRemoved(t *testing.T) {
	both := schema.Injection{Content: "one and two", Source: schema.SourcePeer, Sequence: 2, Sequences: []uint64{1, 2}}
	own := schema.Injection{Content: "a hook's own", Hook: "reminders"}
	for name, c := range map[string]struct {
		handed []uint64
		brings []schema.Injection
		want   []string
	}{
		"nothing was delivered":          {nil, []schema.Injection{bustest.Item(1, "one"), both}, []string{"one", "one and two"}},
		"one of two in a text":           {[]uint64{1}, []schema.Injection{bustest.Item(1, "one"), both}, []string{"one and two"}},
		"both of them":                   {[]uint64{1, 2}, []schema.Injection{both, bustest.Item(3, "three")}, []string{"three"}},
		"a hook's text is not an item":   {[]uint64{1}, []schema.Injection{own, bustest.Item(1, "one"), own}, []string{"a hook's own", "a hook's own"}},
		"an item that was not delivered": {[]uint64{3}, []schema.Injection{bustest.Item(1, "one")}, []string{"one"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, client.Options{})
				s.client.Recall(client.Handover{Fabric: theFabric, Agent: "agent/1", Sequences: c.handed})
				s.Put(c.brings...)
				if diff := cmp.Diff(c.want, contents(s.must())); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestTheSameEventDeliversTheSameItemsUntilTheyAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		s.Silent = true
		s.Put(bustest.Item(1, "one"))
		e := event()
		e.EventID = "0199F3C1-6D1F-7E8A-9B2C-3D4E5F607182"
		for i := range 3 {
			v, err := s.client.Ask(t.Context(), e)
			if err != nil || !slices.Equal(contents(v), []string{"one"}) {
				t.Fatalf("the %d. time: %v, %v", i+1, v, err)
			}
		}
		s.client.Handed(e.EventID)
		if v, err := s.client.Ask(t.Context(), e); err != nil || len(v.Injections) != 0 {
			t.Errorf("after it was delivered: %v, %v", v, err)
		}
		if got := s.client.Noted("agent/1").Events; !slices.Equal(got, []string{strings.ToLower(e.EventID)}) {
			t.Errorf("noted: %v", got)
		}
	})
}

func TestARestartAloneIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		s.Restart = &schema.Restart{Reason: "answers", Content: "read them"}
		v := s.must()
		s.client.Handed(v.EventID)
		if got := s.client.Noted("agent/1").Events; len(got) != 1 {
			t.Errorf("noted: %v", got)
		}
	})
}

func TestAVerdictWithoutAnythingQueuedNeedsNoAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		s.Put(schema.Injection{Content: "a hook's own", Hook: "reminders"})
		v := s.must()
		s.client.Handed(v.EventID)
		pass(time.Minute)
		if len(s.acks()) != 0 || len(contents(v)) != 1 {
			t.Errorf("%+v, %v", s.acks(), contents(v))
		}
	})
}

func TestLargeTextsAreFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		large := strings.Repeat("0123456789abcdef", 5<<16) + "the end"
		in := bustest.Item(1, "")
		in.Object = s.Object(large)
		headed := bustest.Item(2, "From agent2:")
		headed.Object = s.Object("short \xff")
		empty := bustest.Item(3, "")
		empty.Object = s.Object("")
		s.Put(in, headed, empty)
		v := s.must()
		want := []string{large, "From agent2:\nshort \uFFFD", ""}
		if diff := cmp.Diff(want, contents(v)); diff != "" || v.Injections[0].Object != nil {
			t.Errorf("%.200s", diff)
		}
		if s.Fetches != 7 {
			t.Errorf("%d parts were fetched", s.Fetches)
		}
		if h, _ := s.client.Brought(v.EventID); !slices.Equal(h.Sequences, []uint64{1, 2, 3}) || len(h.Events) != 1 {
			t.Errorf("%+v", h)
		}
	})
}

func TestTextsThatCannotBeFetchedAreDeliveredAgain(t *testing.T) {
	part := func(data string, size int64) func(*store, *nats.Msg) {
		return func(s *store, m *nats.Msg) {
			bustest.Respond(m, &schema.FetchAnswer{Data: []byte(data), Size: size})
		}
	}
	for name, answer := range map[string]func(*store, *nats.Msg){
		"it does not exist":      func(_ *store, m *nats.Msg) { bustest.Refuse(m, schema.CodeNotFound, "there is no such object") },
		"it is something else":   part("DAMAGED", 7),
		"it is larger":           part("content", 8),
		"a part is empty":        part("", 7),
		"a part is too large":    part("content and more", 7),
		"the answer is junk":     func(_ *store, m *nats.Msg) { _ = m.Respond([]byte("{")) },
		"the answer never comes": func(*store, *nats.Msg) {},
		"it is not now possible": func(_ *store, m *nats.Msg) { bustest.Refuse(m, schema.CodeUnavailable, "not now") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, client.Options{})
				in := bustest.Item(2, "")
				in.Object = s.Object("content")
				s.Put(bustest.Item(1, "one"), bustest.Item(2, "the head of two"), in)
				s.answers(func(verb string, m *nats.Msg) bool {
					if verb == schema.VerbFetch {
						answer(s, m)
					}
					return verb == schema.VerbFetch
				})
				v, err := s.fake.ask(10 * time.Second)
				if err != nil {
					t.Fatal(err)
				}
				if got := contents(v); len(got) != 3 || got[0] != "one" || !strings.HasPrefix(got[2], "(A message of 7 bytes could not be fetched: ") {
					t.Errorf("%v", got)
				}
				s.client.Handed(v.EventID)
				if err := s.client.Ack(t.Context(), "agent/1", v.EventID); err != nil {
					t.Error(err)
				}
				pass(31 * time.Second)
				if acks := s.acks(); slices.ContainsFunc(acks, func(r schema.AckRequest) bool { return !r.Hold }) {
					t.Fatalf("acknowledged: %+v", acks)
				}
				s.answers(nil)
				v = s.must()
				if got := contents(v); !slices.Equal(got, []string{"the head of two", "content"}) {
					t.Errorf("the next verdict delivers %v", got)
				}
				s.client.Handed(v.EventID)
				pass(3 * time.Second)
				if n := s.waiting(); n != 0 {
					t.Errorf("%d items still wait", n)
				}
			})
		})
	}
}

func TestTextsOverTheLimitAreNotFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		for i := range uint64(2) {
			in := bustest.Item(i+1, "")
			in.Object = &schema.Object{Digest: "sha256-00", Size: 64<<20 + 1}
			s.Put(in)
		}
		if v := s.must(); s.Fetches != 0 || !strings.Contains(contents(v)[1], "more than 64 MiB") {
			t.Errorf("%d parts were fetched: %v", s.Fetches, contents(v))
		}
	})
}

func TestALeaseIsRenewedDuringAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		in := bustest.Item(1, "")
		in.Object = s.Object(strings.Repeat("x", 20<<20))
		s.Put(in)
		slow := func(m *nats.Msg) { time.AfterFunc(3*time.Second, func() { s.Lock(); s.Fetch(m); s.Unlock() }) }
		s.answers(func(verb string, m *nats.Msg) bool {
			if verb == schema.VerbFetch {
				slow(m)
			}
			return verb == schema.VerbFetch
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		v, err := s.client.Ask(ctx, event())
		if err != nil || len(contents(v)[0]) != 20<<20 {
			t.Fatalf("%v, %.100s", err, contents(v)[0])
		}
		acks := s.acks()
		if len(acks) != 6 || !acks[0].Hold || acks[0].Events[0] != v.EventID {
			t.Errorf("%+v", acks)
		}
		if other := s.must(); len(other.Injections) != 0 {
			t.Error("the lease ended")
		}
	})
}
