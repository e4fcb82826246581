package dispatch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

var unloadable = act{kind: schema.LoadError}

func TestAHandlerThatTwoWorkersCannotLoadIsDenied(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x"), hook("y")}, func(w *world) {
		a, b := w.pair(map[string]act{"x": unloadable})
		v, _ := w.ask(time.Minute)
		if v.Decision != schema.Deny || len(v.ExecutedHooks) != 1 || v.ExecutedHooks[0].Outcome != schema.LoadError {
			t.Errorf("%q, %s", v.Decision, trail(v))
		}
		if n := len(a.batches()) + len(b.batches()); n != 2 {
			t.Errorf("%d workers were asked, want both", n)
		}
	})
}

func TestAHandlerThatOneWorkerCannotLoadRunsOnTheOther(t *testing.T) {
	inWorld(t, []schema.Hook{hook("w"), hook("x", once), hook("y")}, func(w *world) {
		a := w.peer("remote", "a", 4)
		a.act("x", unloadable)
		b := w.peer("remote", "b", 0) // full
		verdict := w.askAside(time.Minute)
		b.mu.Lock()
		b.capacity = 4
		b.mu.Unlock()
		v := <-verdict
		if v.Decision != schema.None || !strings.HasPrefix(trail(v), "w=ok@a x=ok@b y=ok@") {
			t.Errorf("%q, %s", v.Decision, trail(v))
		}
	})
}

func TestALoadErrorWithoutASecondWorkerIsDenied(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x")}, func(w *world) {
		w.peer("remote", "a", 4).act("x", unloadable)
		v, took := w.ask(time.Minute)
		w.wants(v, schema.Deny, "x=load_error@a")
		w.took(took, 0, 0)
	})
}

// The guard is missing on one worker, and the other one gives no opinion. That must not
// allow the call.
func TestTheLoadErrorCountsWithoutASecondOpinion(t *testing.T) {
	for what, second := range map[string]func(p *peer){
		"full":   func(p *peer) { p.replying(status(schema.StatusBusy)) },
		"stale":  func(p *peer) { p.replying(status(schema.StatusStale)) },
		"slow":   func(p *peer) { p.frozen.Store(true) },
		"gone":   func(p *peer) { p.dead.Store(true) },
		"liar":   func(p *peer) { p.replying(schema.BatchReply{Outcomes: []schema.Outcome{{Hook: 7}}}) },
		"silent": func(p *peer) { p.replying(schema.BatchReply{}) },
		"blind":  func(p *peer) { p.replying(status(schema.StatusMalformed)) },
		"dying": func(p *peer) {
			p.act("x", act{takes: time.Second})
			time.AfterFunc(schema.BeatEvery+schema.BeatEvery/2, p.kill)
		},
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, []schema.Hook{hook("x", timeout(2*time.Second)), hook("y")}, func(w *world) {
				a := w.peer("remote", "a", 4)
				a.act("x", unloadable)
				b := w.stranger("remote", "b", 4)
				w.members.Beat(&schema.Beat{Pool: "remote", Worker: "b"}) // known, and full
				verdict := w.askAside(time.Minute)
				second(b)
				v := <-verdict
				w.wants(v, schema.Deny, "x=load_error@a")
			})
		})
	}
}

// At the Post events nothing is denied, and the other hooks run.
func TestHooksAfterALoadErrorRunWhereNothingBlocks(t *testing.T) {
	post := at(schema.PostToolUse)
	inWorld(t, []schema.Hook{hook("x", post), hook("y", post), hook("z", post)}, func(w *world) {
		a, b := w.pair(map[string]act{"x": unloadable, "y": unloadable})
		v, _ := w.ask(time.Minute)
		var kinds []string
		for _, x := range v.ExecutedHooks {
			kinds = append(kinds, fmt.Sprint(x.Hook, "=", x.Outcome))
		}
		if want := []string{"x=load_error", "y=load_error", "z=ok"}; !slices.Equal(kinds, want) || v.Decision != schema.None {
			t.Errorf("%q, %q; want %q", v.Decision, kinds, want)
		}
		if n := len(a.batches()) + len(b.batches()); n > 6 {
			t.Errorf("asked %d times", n)
		}
	})
}

// Hooks that ran beside the load error have outcomes. They are not asked again, and
// follow the second opinion.
func TestOutcomesBesideALoadErrorAreKept(t *testing.T) {
	inWorld(t, []schema.Hook{hook("x", readonly, once), hook("y", readonly, once)}, func(w *world) {
		a := w.peer("remote", "a", 4)
		a.replying(schema.BatchReply{Outcomes: []schema.Outcome{
			{Hook: 0, Kind: schema.LoadError}, {Hook: 1, Result: schema.Denied("beside")},
		}})
		w.members.Beat(&schema.Beat{Pool: "remote", Worker: "b"})
		b := w.stranger("remote", "b", 4)
		v, _ := w.ask(time.Minute)
		w.wants(v, schema.Deny, "x=ok@b y=ok@a")
		if v.Reason != "beside" || !slices.Equal(b.batches(), []string{"x"}) {
			t.Errorf("reason %q; the second worker was asked for %q", v.Reason, b.batches())
		}
	})
}

func TestLoadErrorsAreCheckedBetweenLocalAndRemoteWorkers(t *testing.T) {
	for _, broken := range []string{"local", "a"} {
		t.Run(broken, func(t *testing.T) {
			inWorld(t, []schema.Hook{hook("x", pool(schema.DefaultPool))}, func(w *world) {
				l, p := w.local(1), w.peer(schema.DefaultPool, "a", 1)
				want := "x=ok@a"
				if broken == "local" {
					l.act("x", unloadable)
				} else {
					want = "x=ok@local"
					p.act("x", unloadable)
					l.full.Store(true)
					w.opt.Local = tryFunc(func(b *schema.Batch) (schema.BatchReply, bool) {
						if len(p.batches()) == 0 {
							return schema.BatchReply{}, false
						}
						l.full.Store(false)
						return l.Try(w.life, b)
					})
					w.build()
				}
				v, _ := w.ask(time.Minute)
				w.wants(v, schema.None, want)
			})
		})
	}
}

// If the rest of a lost batch runs again, so does the handler that the dead worker could
// not load. If it must not run again, the load error counts.
func TestLoadErrorsInHeartbeatsOfALostWorker(t *testing.T) {
	for _, idempotent := range []bool{true, false} {
		t.Run(fmt.Sprintf("idempotent=%t", idempotent), func(t *testing.T) {
			twice := func(h *schema.Hook) { h.Idempotent = idempotent }
			inWorld(t, []schema.Hook{hook("w", twice), hook("x", twice), hook("y", twice)}, func(w *world) {
				a := w.peer("remote", "a", 4)
				a.frozen.Store(true)
				verdict := w.askAside(time.Minute)
				w.peer("remote", "b", 4)
				w.members.Beat(&schema.Beat{Pool: "remote", Worker: "a", Capacity: 4, Batches: []schema.BatchProgress{
					{Batch: "1", Outcomes: []schema.Outcome{{Hook: 0}, {Hook: 1, Kind: schema.LoadError}}},
				}})
				a.kill()
				if idempotent {
					w.wants(<-verdict, schema.None, "w=ok@a x=ok@b y=ok@b")
				} else {
					w.wants(<-verdict, schema.Deny, "w=ok@a x=load_error@a")
				}
			})
		})
	}
}
