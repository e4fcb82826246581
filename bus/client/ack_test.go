package client_test

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// pass waits on the bubble's clock.
func pass(d time.Duration) { <-time.After(d) }

func TestTheNextEventAcknowledgesADelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		s.Put(bustest.Item(1, "one"))
		v := s.must()
		s.client.Handed(v.EventID)
		pass(time.Second)
		if got := s.client.Noted("agent/1").Events; !slices.Equal(got, []string{v.EventID}) {
			t.Errorf("noted: %v", got)
		}
		s.must()
		if q := s.questions(); len(q[0].Acks) != 0 || !slices.Equal(q[1].Acks, []string{v.EventID}) {
			t.Errorf("acknowledged with the questions: %v, %v", q[0].Acks, q[1].Acks)
		}
		if got := s.client.Noted("agent/1").Events; len(got) != 0 {
			t.Errorf("still noted: %v", got)
		}
		pass(time.Minute)
		if s.must(); len(s.acks()) != 0 || len(s.questions()[2].Acks) != 0 {
			t.Errorf("acknowledged again: %+v", s.acks())
		}
	})
}

func TestWithoutAnEventARequestAcknowledgesAfterTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		s.Put(bustest.Item(1, "one"))
		v := s.must()
		pass(time.Hour)
		if len(s.acks()) != 0 {
			t.Fatalf("acknowledged before it was delivered: %+v", s.acks())
		}
		start := time.Now()
		s.client.Handed(v.EventID)
		s.client.Handed(v.EventID)
		s.client.Handed("0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182")
		pass(time.Hour)
		want := []schema.AckRequest{{Fabric: theFabric, Events: []string{v.EventID}}}
		if diff := cmp.Diff(want, s.acks()); diff != "" || s.AckedAt[0].Sub(start) != 2*time.Second {
			t.Errorf("after %v: %s", s.AckedAt, diff)
		}
	})
}

func TestAnAcknowledgementIsRepeatedUntilItIsConfirmed(t *testing.T) {
	for name, answer := range map[string]func(string, *nats.Msg) bool{
		"a fabric that cannot now": func(_ string, m *nats.Msg) bool { bustest.Refuse(m, schema.CodeUnavailable, "not now"); return true },
		"a fabric that is silent":  func(string, *nats.Msg) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, client.Options{})
				s.Put(bustest.Item(1, "one"))
				v := s.must()
				tries := 0
				s.answers(func(verb string, m *nats.Msg) bool { tries++; return answer(verb, m) })
				s.client.Handed(v.EventID)
				pass(5 * time.Minute)
				s.Lock()
				if tries < 5 || tries > 20 {
					t.Errorf("%d attempts in five minutes", tries)
				}
				s.Unlock()
				s.answers(nil)
				pass(time.Minute)
				if acks := s.acks(); len(acks) != 1 || len(s.client.Noted("agent/1").Events) != 0 {
					t.Errorf("%+v", acks)
				}
			})
		})
	}
}

func TestAnAcknowledgementStaysNotedUntilItIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		s.Silent = true
		s.Put(bustest.Item(1, "one"))
		v := s.must()
		s.client.Handed(v.EventID)
		s.must()
		s.must()
		for i, q := range s.questions()[1:] {
			if !slices.Equal(q.Acks, []string{v.EventID}) {
				t.Errorf("question %d acknowledges %v", i+1, q.Acks)
			}
		}
		pass(3 * time.Second)
		if acks := s.acks(); len(acks) != 1 || len(s.client.Noted("agent/1").Events) != 0 {
			t.Errorf("%+v", acks)
		}
	})
}

func TestAnotherFabricMakesAcknowledgementsVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		s.Put(bustest.Item(1, "one"))
		v := s.must()
		s.client.Handed(v.EventID)
		s.Lock()
		s.ID, s.Leases = "f-other", map[string]bustest.Lease{}
		s.Unlock()
		if v := s.must(); !slices.Equal(contents(v), []string{"one"}) {
			t.Errorf("the other fabric's item 1 was cut: %v", contents(v))
		}
		pass(time.Minute)
		if s.must(); len(s.acks()) != 0 || len(s.questions()[2].Acks) != 0 {
			t.Errorf("%+v, %v", s.acks(), s.questions()[2].Acks)
		}
	})
}

func TestAckAcknowledgesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		if err := s.client.Ack(t.Context(), "agent/1", "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182"); err == nil {
			t.Error("something was acknowledged before any fabric answered")
		}
		s.Put(bustest.Item(1, "one"))
		v, start := s.must(), time.Now()
		if err := s.client.Ack(t.Context(), "agent/1", "x"); !errors.Is(err, client.ErrInvalid) {
			t.Errorf("an event that is not a UUID: %v", err)
		}
		if err := s.client.Ack(t.Context(), "agent/1", v.EventID); err != nil {
			t.Error(err)
		}
		if acks := s.acks(); len(acks) != 1 || !s.AckedAt[0].Equal(start) {
			t.Errorf("%+v after %v", acks, s.AckedAt)
		}
		s.Put(bustest.Item(2, "two"))
		v = s.must()
		s.answers(func(_ string, m *nats.Msg) bool { bustest.Refuse(m, schema.CodeInternal, "no luck"); return true })
		err := s.client.Ack(t.Context(), "agent/1", v.EventID)
		if e, ok := errors.AsType[*schema.ControlError](err); !ok || e.Code != schema.CodeInternal {
			t.Errorf("%v", err)
		}
		s.answers(nil)
		pass(3 * time.Second)
		if len(s.acks()) != 2 {
			t.Error("a failed Ack was not repeated later")
		}
	})
}

func TestFlushAcknowledgesAllNotedEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		var want []string
		for i := range uint64(3) {
			s.Put(bustest.Item(i+1, "text"))
			v := s.must()
			s.client.Handed(v.EventID)
			want = append(want, v.EventID)
		}
		s.Silent = true
		if err := s.client.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		// The first two were acknowledged by the events after them.
		if acks := s.acks(); len(acks) != 1 || !slices.Equal(acks[0].Events, want[2:]) {
			t.Errorf("%+v", acks)
		}
	})
}

func TestALeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		s.Put(bustest.Item(1, "one"))
		v := s.must()
		for range 10 {
			pass(10 * time.Second)
			if err := s.client.Hold(t.Context(), "agent/1", v.EventID); err != nil {
				t.Fatal(err)
			}
			if other := s.must(); len(other.Injections) != 0 {
				t.Fatal("the lease had ended")
			}
		}
		if acks := s.acks(); len(acks) != 10 || !acks[0].Hold {
			t.Errorf("%+v", acks)
		}
	})
}

func TestTheFirstEventAcknowledgesRecalledDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		const event, elsewhere = "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182", "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607183"
		s.Silent = true
		s.Put(bustest.Item(7, "seven"), bustest.Item(8, "eight"))
		s.client.Recall(
			client.Handover{Fabric: theFabric, Agent: "agent/1", Events: []string{event}, Sequences: []uint64{7}},
			client.Handover{Fabric: "f-gone", Agent: "agent/1", Events: []string{elsewhere}, Sequences: []uint64{8}},
		)
		v := s.must()
		if acks := s.questions()[0].Acks; !slices.Equal(acks, []string{event, elsewhere}) {
			t.Errorf("acknowledged: %v", acks)
		}
		if got := contents(v); !slices.Equal(got, []string{"eight"}) {
			t.Errorf("the verdict delivers %v", got)
		}
		if got := s.client.Noted("agent/1").Events; !slices.Equal(got, []string{event}) {
			t.Errorf("noted: %v", got)
		}
		if h, ok := s.client.Brought(v.EventID); !ok || !slices.Equal(h.Sequences, []uint64{8}) || h.Fabric != theFabric {
			t.Errorf("it delivered %+v", h)
		}
	})
}

func TestAClientMayEndWhileItAcknowledges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		for i := range 50 {
			c, err := client.Connect(t.Context(), client.Options{InProcess: s.link, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			e := event()
			s.Put(bustest.Item(uint64(i+1), "text"))
			v, err := c.Ask(t.Context(), e)
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			all.Go(func() { c.Handed(v.EventID); pass(2 * time.Second) })
			all.Go(func() { pass(2 * time.Second); c.Close() })
			all.Go(func() { pass(2 * time.Second); c.Handed(v.EventID); _ = c.Flush(t.Context()) })
			all.Wait()
			c.Close()
		}
	})
}
