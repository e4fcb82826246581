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

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/bus/client/clienttest"
	"github.com/hookfabric/hookfabric/schema"
)

// pass lets time pass, of which a bubble has plenty.
func pass(d time.Duration) { <-time.After(d) }

func TestWhatWasHandedOverIsAcknowledgedWithTheNextQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		s.Put(clienttest.Item(1, "one"))
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
		if s.must(); len(s.said()) != 0 || len(s.questions()[2].Acks) != 0 {
			t.Errorf("said again: %+v", s.said())
		}
	})
}

func TestWithoutAnotherQuestionARequestAcknowledgesAfterTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		s.Put(clienttest.Item(1, "one"))
		v := s.must()
		pass(time.Hour)
		if len(s.said()) != 0 {
			t.Fatalf("acknowledged before it was handed over: %+v", s.said())
		}
		start := time.Now()
		s.client.Handed(v.EventID)
		s.client.Handed(v.EventID)
		s.client.Handed("0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182")
		pass(time.Hour)
		want := []schema.AckRequest{{Fabric: theFabric, Events: []string{v.EventID}}}
		if diff := cmp.Diff(want, s.said()); diff != "" || s.AckedAt[0].Sub(start) != 2*time.Second {
			t.Errorf("after %v: %s", s.AckedAt, diff)
		}
	})
}

func TestAnAcknowledgementIsRepeatedUntilItIsConfirmed(t *testing.T) {
	for name, answer := range map[string]func(string, *nats.Msg) bool{
		"a fabric that cannot now": func(_ string, m *nats.Msg) bool { clienttest.Refuse(m, schema.CodeUnavailable, "not now"); return true },
		"a fabric that is silent":  func(string, *nats.Msg) bool { return true },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(t, client.Options{})
				s.Put(clienttest.Item(1, "one"))
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
				if said := s.said(); len(said) != 1 || len(s.client.Noted("agent/1").Events) != 0 {
					t.Errorf("%+v", said)
				}
			})
		})
	}
}

func TestAnAcknowledgementThatRodeStaysNotedUntilItIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		s.Silent = true
		s.Put(clienttest.Item(1, "one"))
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
		if said := s.said(); len(said) != 1 || len(s.client.Noted("agent/1").Events) != 0 {
			t.Errorf("%+v", said)
		}
	})
}

func TestAnotherFabricMakesAcknowledgementsVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		s.Put(clienttest.Item(1, "one"))
		v := s.must()
		s.client.Handed(v.EventID)
		s.Lock()
		s.ID, s.Leases = "f-other", map[string]clienttest.Lease{}
		s.Unlock()
		if v := s.must(); !slices.Equal(contents(v), []string{"one"}) {
			t.Errorf("the other fabric's item 1 was cut: %v", contents(v))
		}
		pass(time.Minute)
		if s.must(); len(s.said()) != 0 || len(s.questions()[2].Acks) != 0 {
			t.Errorf("%+v, %v", s.said(), s.questions()[2].Acks)
		}
	})
}

func TestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		if err := s.client.Ack(t.Context(), "agent/1", "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182"); err == nil {
			t.Error("something was acknowledged before any fabric answered")
		}
		s.Put(clienttest.Item(1, "one"))
		v, start := s.must(), time.Now()
		if err := s.client.Ack(t.Context(), "agent/1", "x"); !errors.Is(err, client.ErrInvalid) {
			t.Errorf("an event that is no UUID: %v", err)
		}
		if err := s.client.Ack(t.Context(), "agent/1", v.EventID); err != nil {
			t.Error(err)
		}
		if said := s.said(); len(said) != 1 || !s.AckedAt[0].Equal(start) {
			t.Errorf("%+v after %v", said, s.AckedAt)
		}
		s.Put(clienttest.Item(2, "two"))
		v = s.must()
		s.answers(func(_ string, m *nats.Msg) bool { clienttest.Refuse(m, schema.CodeInternal, "no luck"); return true })
		err := s.client.Ack(t.Context(), "agent/1", v.EventID)
		if e, ok := errors.AsType[*schema.ControlError](err); !ok || e.Code != schema.CodeInternal {
			t.Errorf("%v", err)
		}
		s.answers(nil)
		pass(3 * time.Second)
		if len(s.said()) != 2 {
			t.Error("what failed at once was not said later")
		}
	})
}

func TestAProcessThatEndsAcknowledgesAllThatIsNoted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		var want []string
		for i := range uint64(3) {
			s.Put(clienttest.Item(i+1, "text"))
			v := s.must()
			s.client.Handed(v.EventID)
			want = append(want, v.EventID)
		}
		s.Silent = true
		if err := s.client.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		// The first two rode on the questions after them.
		if said := s.said(); len(said) != 1 || !slices.Equal(said[0].Events, want[2:]) {
			t.Errorf("%+v", said)
		}
	})
}

func TestALeaseIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		s.Put(clienttest.Item(1, "one"))
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
		if said := s.said(); len(said) != 10 || !said[0].Hold {
			t.Errorf("%+v", said)
		}
	})
}

func TestWhatAProcessBeforeKeptRidesOnTheFirstQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		const event, elsewhere = "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182", "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607183"
		s.Silent = true
		s.Put(clienttest.Item(7, "seven"), clienttest.Item(8, "eight"))
		s.client.Recall(
			client.Handover{Fabric: theFabric, Agent: "agent/1", Events: []string{event}, Sequences: []uint64{7}},
			client.Handover{Fabric: "f-gone", Agent: "agent/1", Events: []string{elsewhere}, Sequences: []uint64{8}},
		)
		v := s.must()
		if acks := s.questions()[0].Acks; !slices.Equal(acks, []string{event, elsewhere}) {
			t.Errorf("rode: %v", acks)
		}
		if got := contents(v); !slices.Equal(got, []string{"eight"}) {
			t.Errorf("the verdict brings %v", got)
		}
		if got := s.client.Noted("agent/1").Events; !slices.Equal(got, []string{event}) {
			t.Errorf("noted: %v", got)
		}
		if h, ok := s.client.Brought(v.EventID); !ok || !slices.Equal(h.Sequences, []uint64{8}) || h.Fabric != theFabric {
			t.Errorf("it brought %+v", h)
		}
	})
}

func TestAClientMayEndWhileItAcknowledges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, client.Options{})
		for i := range 50 {
			c, err := client.Connect(t.Context(), client.Options{InProcess: s.line, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			e := event()
			s.Put(clienttest.Item(uint64(i+1), "text"))
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
