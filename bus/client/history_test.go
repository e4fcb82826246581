package client_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// reading is a fabric with hooks that need the conversation, and a client.
type reading struct {
	*bustest.Fabric
	*client.Client

	t *testing.T
}

func newReading(t *testing.T, hooks ...schema.PolicyHook) *reading {
	t.Helper()
	srv := bustest.Start(t)
	f := bustest.NewFabric("f")
	f.Version, f.Signer, f.Guards = 7, bustest.Signer(1), hooks
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := f.Serve(ctx, bustest.Connect(t, srv, "fabric")); err != nil {
		t.Fatal(err)
	}
	c, err := client.Connect(t.Context(), client.Options{InProcess: srv})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &reading{f, c, t}
}

var atTheEnd = schema.PolicyHook{Hook: "summary", Event: schema.BeforeFinalResponse, History: true}

// ask asks about an event with a conversation, and returns the event as the fabric
// received it.
func (r *reading) ask(kind schema.EventType, history func() []schema.Message) schema.Event {
	r.t.Helper()
	if _, err := r.Ask(r.t.Context(), &schema.Event{HookType: kind, AgentID: "a"}, client.History(history)); err != nil {
		r.t.Fatal(err)
	}
	return r.got()
}

// got returns the last event.
func (r *reading) got() (e schema.Event) {
	r.t.Helper()
	r.Lock()
	defer r.Unlock()
	if err := schema.Unmarshal(r.Asked[len(r.Asked)-1].Body, &e); err != nil {
		r.t.Fatal(err)
	}
	return e
}

// stored counts the bytes sent to the store.
func (r *reading) stored() (n int) {
	r.Lock()
	defer r.Unlock()
	for _, k := range r.Keeps {
		n += len(k.Data)
	}
	return n
}

// message returns a message with that many bytes of text, made unique by n.
func message(n, size int) schema.Message {
	text := fmt.Sprintf("%d: ", n)
	return schema.Message{Role: schema.RoleUser, Content: text + strings.Repeat("x", max(0, size-len(text)))}
}

func same(t interface{ Fatalf(string, ...any) }, want []schema.Message, got jsontext.Value) {
	var all []schema.Message
	if err := schema.Unmarshal(got, &all); err != nil {
		t.Fatalf("%v", err)
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Fatalf("a hook would see another conversation:\n%.2000s", diff)
	}
}

func TestAConversationWithoutAHookThatNeedsItIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReading(t, atTheEnd)
		called := 0
		history := func() []schema.Message { called++; return []schema.Message{message(1, 1000)} }
		e := r.ask(schema.BeforeLLMCall, history)
		if called != 0 || len(e.History) > 0 || !strings.HasPrefix(e.HistoryRef, schema.HistoryLost) {
			t.Errorf("it was called for %d times; %q, %s", called, e.HistoryRef, e.History)
		}
		if e := r.ask(schema.BeforeFinalResponse, history); called != 1 || e.HistoryRef != "" {
			t.Errorf("it was called for %d times; %q", called, e.HistoryRef)
		} else {
			same(t, history(), e.History)
		}
		// A conversation in the event is left out in the same way.
		_, err := r.Ask(t.Context(), &schema.Event{HookType: schema.AfterLLMCall, AgentID: "a", History: jsontext.Value(`[{"role":"user","content":"x"}]`)})
		if e := r.got(); err != nil || len(e.History) > 0 {
			t.Errorf("%v, %s", err, e.History)
		}
		if r.Policies != 1 || len(r.Keeps) != 0 {
			t.Errorf("the policy was asked for %d times, and %d parts were sent", r.Policies, len(r.Keeps))
		}
	})
}

func TestANewVersionMakesTheClientAskForNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReading(t)
		history := func() []schema.Message { return []schema.Message{message(1, 10)} }
		r.ask(schema.BeforeFinalResponse, history)
		<-time.After(2 * time.Second)
		r.Lock()
		r.Version, r.Guards = 8, []schema.PolicyHook{atTheEnd}
		r.Unlock()
		e := r.ask(schema.BeforeFinalResponse, history) // a hook that needs it must not mistake it for an empty one
		if !strings.HasPrefix(e.HistoryRef, schema.HistoryLost) {
			t.Errorf("%q", e.HistoryRef)
		}
		if e = r.ask(schema.BeforeFinalResponse, history); len(e.History) == 0 {
			t.Errorf("the new version needs it: %+v", e)
		}
		n, err := r.Needs(t.Context(), "a")
		if diff := cmp.Diff(client.Needs{ConfigVersion: 8, History: []schema.EventType{schema.BeforeFinalResponse}}, n); err != nil || diff != "" {
			t.Errorf("%v\n%s", err, diff)
		}
	})
}

// A hook reads the agent's whole conversation, for any conversation.
func TestAHookReadsTheAgentsConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReading(t, atTheEnd)
		rapid.Check(struct{ testing.TB }{t}, func(rt *rapid.T) { // in a bubble, Deadline must not be called
			var all []schema.Message
			for i := range rapid.IntRange(1, 3).Draw(rt, "events") {
				for range rapid.IntRange(0, 6).Draw(rt, "new") {
					size := rapid.SampledFrom([]int{10, 10, 3000, 30_000, 30_000, 70_000, 600_000, 2_200_000}).Draw(rt, "size")
					all = append(all, message(len(all)*100+i, size))
				}
				if n := rapid.IntRange(0, len(all)).Draw(rt, "dropped"); rapid.Bool().Draw(rt, "drops") {
					all = append([]schema.Message{}, all[n:]...)
				}
				if len(all) > 0 && rapid.Bool().Draw(rt, "edits") {
					all[rapid.IntRange(0, len(all)-1).Draw(rt, "edited")].Content = "edited\n\u2028 <&>"
				}
				if _, err := r.Ask(t.Context(), &schema.Event{HookType: schema.BeforeFinalResponse, AgentID: "a"},
					client.History(func() []schema.Message { return all })); err != nil {
					rt.Fatal(err)
				}
				e := r.got()
				if len(e.History) > 2*schema.HistoryPart+schema.HistoryPart {
					rt.Fatalf("%d bytes of the conversation are in the event", len(e.History))
				}
				r.Lock()
				seen, err := r.Conversation(&e)
				r.Asked, r.Keeps = r.Asked[:0], r.Keeps[:0]
				r.Unlock()
				if err != nil {
					rt.Fatalf("%v: %q", err, e.HistoryRef)
				}
				if want := all; len(want) == 0 {
					same(rt, []schema.Message{}, seen)
				} else {
					same(rt, want, seen)
				}
			}
		})
	})
}

// Each part of a growing conversation is sent once, for any number of events.
func TestEachPartOfAConversationIsSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReading(t, atTheEnd)
		var all []schema.Message
		events, inline, size := 25, 0, 0
		for i := range events {
			for j := range 80 {
				all = append(all, message(i*80+j, 1000+(i*7919+j*104729)%8500))
				size += len(all[len(all)-1].Content)
			}
			r.ask(schema.BeforeFinalResponse, func() []schema.Message { return all })
			r.Lock()
			inline += len(r.Asked[len(r.Asked)-1].Body)
			r.Unlock()
		}
		t.Logf("%d events of a conversation that grew to %d bytes: %d bytes were stored, %d were sent in events", events, size, r.stored(), inline)
		if n := r.stored(); n > size+size/10 || inline > events*2*schema.HistoryPart {
			t.Errorf("%d bytes were stored, and %d were sent in events; the conversation has %d", n, inline, size)
		}
		// A window that moves over it, as when the oldest messages are dropped, stores
		// few new parts.
		before := r.stored()
		for range 10 {
			all = all[3:]
			r.ask(schema.BeforeFinalResponse, func() []schema.Message { return all })
		}
		if n := r.stored() - before; n > size/10 {
			t.Errorf("%d bytes were stored because ten times the oldest messages were dropped; it has %d", n, size)
		}
	})
}

func TestAConversationThatCannotBeStoredIsMissingInTheEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReading(t, atTheEnd)
		refused, silent := true, false
		asked := 0
		r.Answer = func(verb string, m *nats.Msg) bool {
			if verb != schema.VerbKeep {
				return false
			}
			asked++
			if refused {
				bustest.Refuse(m, schema.CodeUnavailable, "the object store is full")
			}
			return refused || silent
		}
		history := func() []schema.Message { return []schema.Message{message(1, 100_000), message(2, 100_000)} }
		began := time.Now()
		e := r.ask(schema.BeforeFinalResponse, history)
		if took := time.Since(began); !strings.Contains(e.HistoryRef, "lost:the object store is full") || took > time.Second {
			t.Errorf("after %s: %q", took, e.HistoryRef)
		}
		synctest.Wait() // the other part may still be in progress when the first was refused
		before := asked
		if r.ask(schema.BeforeFinalResponse, history); asked != before {
			t.Error("a store that is full was asked again at once")
		}
		refused, silent = false, true
		<-time.After(10 * time.Second)
		began = time.Now()
		e = r.ask(schema.BeforeFinalResponse, history)
		if took := time.Since(began); !strings.HasPrefix(e.HistoryRef, schema.HistoryLost) || took > 20*time.Second {
			t.Errorf("no broker answers; after %s: %q", took, e.HistoryRef)
		}
		silent = false
		e = r.ask(schema.BeforeFinalResponse, history)
		if parts, err := schema.HistoryParts(e.HistoryRef); err != nil || len(parts) == 0 {
			t.Errorf("it can be stored again: %q", e.HistoryRef)
		}
	})
}

// A part may expire while an agent thinks. The client then checks it again, but not with
// each event.
func TestExpiredPartsAreStoredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReading(t, atTheEnd)
		history := func() []schema.Message { return []schema.Message{message(1, 200_000), message(2, 200_000)} }
		r.ask(schema.BeforeFinalResponse, history)
		before := r.stored()
		<-time.After(29 * time.Minute)
		if r.ask(schema.BeforeFinalResponse, history); r.stored() != before {
			t.Error("stored parts are sent again")
		}
		<-time.After(3 * time.Hour)
		r.Lock()
		clear(r.Objects) // they have expired
		r.Unlock()
		e := r.ask(schema.BeforeFinalResponse, history)
		r.Lock()
		defer r.Unlock()
		seen, err := r.Conversation(&e)
		if err != nil {
			t.Fatal(err)
		}
		same(t, history(), seen)
	})
}

// A part that an overloaded broker refuses is sent again, so that the conversation is
// complete.
func TestARefusedPartIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReading(t, atTheEnd)
		asked := 0
		r.Answer = func(verb string, m *nats.Msg) bool {
			if verb != schema.VerbKeep {
				return false
			}
			if asked++; asked == 1 {
				bustest.Refuse(m, schema.CodeUnavailable, "too many parts of conversations are already under way; try again")
			}
			return asked == 1
		}
		e := r.ask(schema.BeforeFinalResponse, func() []schema.Message { return []schema.Message{message(1, 200_000)} })
		if parts, err := schema.HistoryParts(e.HistoryRef); err != nil || len(parts) == 0 || asked < 2 {
			t.Errorf("sent %d times: %q", asked, e.HistoryRef)
		}
	})
}

// If a hook could not read a part, the client checks it again.
func TestALostPartIsStoredAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReading(t, atTheEnd)
		history := func() []schema.Message { return []schema.Message{message(1, 200_000)} }
		r.ask(schema.BeforeFinalResponse, history)
		r.Lock()
		clear(r.Objects)
		r.OnEvent = func(m *nats.Msg, q bus.EventRequest) bool {
			v := r.Judge(q)
			v.ExecutedHooks = []schema.ExecutedHook{{Hook: "summary", Outcome: schema.Errored, Error: schema.HistoryMissing + ": it is gone"}}
			bustest.Respond(m, v)
			return true
		}
		r.Unlock()
		r.ask(schema.BeforeFinalResponse, history) // the loss is detected
		e := r.ask(schema.BeforeFinalResponse, history)
		r.Lock()
		defer r.Unlock()
		seen, err := r.Conversation(&e)
		if err != nil {
			t.Fatal(err)
		}
		same(t, history(), seen)
	})
}
