package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// An invalid reply is an error of the batch's hooks, and none of its outcomes counts.
func TestAnInvalidReplyIsAnErrorOfItsHooks(t *testing.T) {
	deny := schema.Denied("not asked")
	for what, outcomes := range map[string][]schema.Outcome{
		"none":                 nil,
		"too many":             {{Hook: 0}, {Hook: 1}, {Hook: 1}},
		"foreign":              {{Hook: 2, Result: deny}},
		"foreign behind":       {{Hook: 0}, {Hook: 2, Result: deny}},
		"negative":             {{Hook: -1, Result: deny}},
		"out of range":         {{Hook: 1 << 30, Result: deny}},
		"in the wrong order":   {{Hook: 1}, {Hook: 0}},
		"twice the first":      {{Hook: 0}, {Hook: 0}},
		"not from the first":   {{Hook: 1}},
		"foreign, then deny":   {{Hook: 2}, {Hook: 0, Result: deny}},
		"a deny out of order ": {{Hook: 1, Result: deny}, {Hook: 0}},
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, []schema.Hook{hook("x"), hook("y"), hook("z", pool("other"))}, func(w *world) {
				w.peer("remote", "a", 4).replying(schema.BatchReply{Outcomes: outcomes})
				w.peer("other", "b", 4)
				v, _ := w.ask(time.Minute)
				w.wants(v, schema.None, "x=error y=error z=ok@b")
			})
		})
	}
}

func TestAnInvalidReplyIsDeniedForAFailClosedHook(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x"), hook("y", closed)}, func(w *world) {
		w.peer("remote", "a", 4).replying(schema.BatchReply{Outcomes: []schema.Outcome{{Hook: 5, Result: schema.Allowed()}}})
		v, _ := w.ask(time.Minute)
		w.wants(v, schema.Deny, "x=error y=error")
	})
}

func TestHooksWithoutAnOutcomeAreAskedAgain(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", once), hook("y", once), hook("z", once)}, func(w *world) {
		p := w.peer("remote", "a", 4)
		p.replying(
			schema.BatchReply{Outcomes: []schema.Outcome{{Hook: 0, Result: schema.Rewritten(jsontext.Value(`{"n":9}`))}}},
			schema.BatchReply{Outcomes: []schema.Outcome{{Hook: 1}}}, schema.BatchReply{Outcomes: []schema.Outcome{{Hook: 2}}},
		)
		v, _ := w.ask(time.Minute)
		w.wants(v, schema.None, "x=ok@a y=ok@a z=ok@a")
		if got := p.batches(); !slices.Equal(got, []string{"x+y+z", "y+z", "z"}) {
			t.Errorf("asked for %q", got)
		}
	})
}

func TestAnUnknownKindOfOutcomeFollowsThePolicy(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x"), hook("y", closed), hook("z")}, func(w *world) {
		w.peer("remote", "a", 4).replying(schema.BatchReply{Outcomes: []schema.Outcome{
			{Hook: 0, Kind: "eaten", Result: schema.Allowed()}, {Hook: 1, Kind: "eaten", Result: schema.Allowed()}, {Hook: 2},
		}})
		v, _ := w.ask(time.Minute)
		w.wants(v, schema.Deny, "x=error@a y=error@a")
	})
}

// Invalid outcomes in a heartbeat are dropped, like those in a reply.
func TestInvalidOutcomesInAHeartbeatAreDropped(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x")}, func(w *world) {
		p := w.stranger("remote", "a", 4)
		p.mute.Store(true)
		p.act("x", act{takes: time.Minute})
		w.members.Beat(&schema.Beat{Pool: "remote", Worker: "a", Capacity: 1})
		verdict := w.askAside(time.Minute)
		w.members.Beat(&schema.Beat{Pool: "remote", Worker: "a", Capacity: 1, Batches: []schema.BatchProgress{
			{Batch: "1", Outcomes: []schema.Outcome{{Hook: 3, Result: schema.Denied("no")}}},
		}})
		w.members.Beat(&schema.Beat{Pool: "remote", Worker: "stranger", Capacity: 0, Batches: []schema.BatchProgress{
			{Batch: "1", Outcomes: []schema.Outcome{{Hook: 0, Result: schema.Denied("no")}, {Hook: 0}}},
		}})
		w.members.Gone("stranger") // which never had the batch
		w.members.Gone("a")
		w.wants(<-verdict, schema.None, "x=lost")
	})
}

func TestAForgedEventIsDeniedUnderAllPolicies(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x"), hook("y", pool("other"))}, func(w *world) {
		w.peer("remote", "a", 4).replying(status(schema.StatusMismatch))
		other := w.peer("other", "b", 4)
		v, _ := w.request(&dispatch.Request{Deadline: time.Now().Add(time.Minute), Body: []byte(`{"tool_name":"Write"}`)})
		if v.Decision != schema.Deny || !strings.Contains(v.Reason, "Write") || len(other.batches()) > 0 {
			t.Errorf("%q because %q; then %q were asked", v.Decision, v.Reason, other.batches())
		}
	})
}

func TestAnUnreadableEventIsDeniedIfItIsGuarded(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		t.Run(fmt.Sprint(guarded), func(t *testing.T) {
			last := hook("y", pool("other"))
			last.FailClosed = guarded
			inWorld(t, []schema.Hook{hook("x"), last}, func(w *world) {
				w.peer("remote", "a", 4)
				v, _ := w.request(&dispatch.Request{Deadline: time.Now().Add(time.Minute), Body: []byte(`{"tool_input":7}`)})
				want := schema.None
				if guarded {
					want = schema.Deny
				}
				w.wants(v, want, "")
				if len(v.HookErrors) != 1 || !strings.Contains(v.HookErrors[0], "tool_input") {
					t.Errorf("errors %q", v.HookErrors)
				}
			})
		})
	}
}

// A worker that rejects a valid event fails its hooks; hooks of other pools are asked.
func TestRejectingAValidEventIsAnErrorOfTheWorkersHooks(t *testing.T) {
	for _, s := range []schema.Status{schema.StatusMalformed, schema.StatusMismatch} {
		t.Run(string(s), func(t *testing.T) {
			inWorld(t, []schema.Hook{hook("x"), hook("y", pool("other"))}, func(w *world) {
				a := w.peer("remote", "a", 4)
				a.replying(status(s))
				w.peer("other", "b", 4).act("y", act{says: schema.Denied("no")})
				v, _ := w.ask(time.Minute)
				w.wants(v, schema.Deny, "x=error y=ok@b")
				a.replying()
				v, took := w.ask(time.Minute) // the worker is not excluded because of the event
				w.wants(v, schema.Deny, "x=ok@a y=ok@b")
				w.took(took, 0, 0)
			})
		})
	}
}

func TestForgedAndUnreadableEventsBlockWhereTheyCan(t *testing.T) {
	forged, junk := &schema.Mismatch{Header: "a", Body: "b"}, errors.New("junk")
	for _, event := range schema.EventTypes() {
		for _, guarded := range []bool{false, true} {
			for _, err := range []error{forged, junk} {
				want := schema.None
				if guarded || errors.Is(err, forged) && event.Blocking() == schema.Deny {
					want = event.Blocking()
				}
				v := dispatch.Malformed(event, guarded, err)
				if v.Decision != want || (v.Reason == "") != (want == schema.None) || len(v.HookErrors) != 1 {
					t.Errorf("%s, guarded %t, %T: %+v", event, guarded, err, v)
				}
			}
		}
	}
}

func TestAPanicOfTheCallerIsAnErrorAndFreesTheSlot(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x"), hook("y", closed)}, func(w *world) {
		w.peer("remote", "a", 1).mute.Store(true)
		w.stopped.Store(true)
		panics := true
		w.opt.Caller = callerFunc(func(ctx context.Context, pool, worker string, b *schema.Batch) (schema.BatchReply, error) {
			if panics {
				panic("oh no")
			}
			return w.Call(ctx, pool, worker, b)
		})
		w.build()
		for range 3 {
			v, _ := w.ask(time.Minute)
			w.wants(v, schema.Deny, "x=error y=error")
		}
		panics = false
		v, took := w.ask(time.Minute)
		w.wants(v, schema.None, "x=ok@a y=ok@a")
		w.took(took, 0, 0)
	})
}

func TestAPanicOfTheLocalWorkerIsAnError(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed, pool(schema.DefaultPool))}, func(w *world) {
		w.opt.Local = tryFunc(func(*schema.Batch) (schema.BatchReply, bool) { panic("oh no") })
		w.build()
		v, _ := w.ask(time.Minute)
		w.wants(v, schema.Deny, "x=error")
	})
}

func TestABusErrorLosesTheHooks(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", closed)}, func(w *world) {
		w.peer("remote", "a", 1)
		w.opt.Caller = callerFunc(func(context.Context, string, string, *schema.Batch) (schema.BatchReply, error) {
			return schema.BatchReply{}, errors.New("the connection is closed")
		})
		w.build()
		v, _ := w.ask(time.Minute)
		w.wants(v, schema.Deny, "x=lost")
	})
}

// No worker listens any more, so the batch was not delivered and goes to the next one,
// for all hooks.
func TestABatchThatWasNotDeliveredGoesToAnotherWorker(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", once, closed)}, func(w *world) {
		a, b := w.pair(nil)
		a.dead.Store(true)
		for range 4 {
			v, _ := w.ask(time.Minute)
			w.wants(v, schema.None, "x=ok@"+b.name)
		}
		w.wantsEvents()
	})
}
