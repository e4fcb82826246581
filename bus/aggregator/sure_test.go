package aggregator_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/schema"
)

// lease is one that the test lets lapse and renews.
type lease struct {
	lapsed  atomic.Bool
	renewed chan struct{}
}

func (l *lease) Fresh(time.Time) bool { return !l.lapsed.Load() }

func (l *lease) Wait(ctx context.Context) error {
	select {
	case <-l.renewed:
		l.lapsed.Store(false)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func TestABrokerThatLostTouchWithTheConfigurationAnswersNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{renewed: make(chan struct{})}
		f := startWith(t, aggregator.Options{Lease: l}, library{"yes": says(schema.Allowed()), "no": says(schema.Denied("no"))}, hook("yes"))
		want(t, f.ask(event(schema.PreToolUse)), schema.Allow, "yes:ok")
		l.lapsed.Store(true)
		if !f.send(event(schema.PreToolUse)).nothing() {
			t.Error("it answered, or said that it is at work")
		}
		if !f.send(event(schema.BeforeLLMCall)).nothing() {
			t.Error("it answered what no hook matches")
		}
	})
}

func TestACallThatWaitedForTheConfigurationGetsTheOneThatIsActive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{renewed: make(chan struct{})}
		f := startWith(t, aggregator.Options{Lease: l}, library{"yes": says(schema.Allowed()), "no": says(schema.Denied("no"))}, hook("yes"))
		l.lapsed.Store(true)
		a := f.send(event(schema.PreToolUse))
		synctest.Wait()
		f.activate(5, hook("no"))
		close(l.renewed)
		v, _ := a.verdict()
		want(t, v, schema.Deny, "no:ok")
		if v.ConfigVersion != 5 {
			t.Errorf("by version %d", v.ConfigVersion)
		}
	})
}

// TestACallThatWasUnderWayAsTheLeaseLapsedPassesNoFreeze checks that a client that freezes an agent
// does not wait for a broker whose lease is over, nor for the calls whose hooks that broker runs
// then.
func TestACallThatWasUnderWayAsTheLeaseLapsedPassesNoFreeze(t *testing.T) {
	for name, c := range map[string]struct {
		renewed, frozen bool
		says            schema.Result
		event           schema.EventType
		want            schema.Decision
	}{
		"lapsed for good":               {says: schema.Allowed(), event: schema.PreToolUse},
		"renewed and frozen":            {says: schema.Allowed(), event: schema.PreToolUse, renewed: true, frozen: true, want: schema.Deny},
		"renewed and not frozen":        {says: schema.Allowed(), event: schema.PreToolUse, renewed: true, want: schema.Allow},
		"lapsed, refused by its hooks":  {says: schema.Denied("no"), event: schema.PreToolUse, want: schema.Deny},
		"lapsed, what no freeze is for": {event: schema.BeforeLLMCall, want: schema.Continue},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &lease{renewed: make(chan struct{})}
				f := freezable(t, aggregator.Options{Lease: l}, library{}, hook("x", remote, at(c.event)))
				w := f.worker("w1")
				call := f.send(event(c.event))
				b, m := w.batch()
				l.lapsed.Store(true)
				w.answer(b, m, c.says)
				synctest.Wait()
				if c.want == "" {
					if !call.nothing() {
						t.Error("it was answered")
					}
					return
				}
				if c.frozen {
					l.lapsed.Store(false) // this broker applies the next change before the call ends
					f.frozen("freeze._", `{"agents":"*"}`)
				}
				if c.renewed {
					close(l.renewed)
				}
				v, _ := call.verdict()
				want(t, v, c.want, "x:ok")
				if v.Frozen != c.frozen {
					t.Errorf("%+v", v)
				}
			})
		})
	}
}

func TestACallThatIsAskedAgainMeanwhileIsNotRunLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lease{renewed: make(chan struct{})}
		f := startWith(t, aggregator.Options{Lease: l}, library{"yes": says(schema.Allowed())}, hook("yes", func(h *schema.Hook) { h.Idempotent = true }))
		l.lapsed.Store(true)
		first := f.send(event(schema.PreToolUse))
		<-time.After(schema.Missed * schema.BeatEvery) // when the shim asks again
		again := event(schema.PreToolUse)
		again.Subject += ".again"
		again.Header.Set(schema.HeaderAttempt, "2")
		second := f.send(again)
		synctest.Wait()
		close(l.renewed)
		v, _ := second.verdict()
		want(t, v, schema.Allow, "yes:ok")
		if !first.nothing() {
			t.Error("the first attempt was answered, too")
		}
	})
}
