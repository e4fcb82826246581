package aggregator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

func TestAWorkersBeatsDecideWhoIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{}, hook("x", remote))
		full, free := f.worker("full"), f.worker("free")
		full.beat(schema.Beat{Capacity: 9, InFlight: 8})
		synctest.Wait()
		a := f.send(event(schema.PreToolUse))
		b, m := free.batch()
		if b.Version != 1 || len(b.Hooks) != 1 || b.Hooks[0] != 0 || b.Agent != "a" || b.Tool != "Bash" || b.Session != "s" || b.ID != eventID || b.Left <= 0 || b.Left > schema.DefaultTimeout.Std()+5*time.Second {
			t.Errorf("%+v", b)
		}
		free.answer(b, m, schema.Denied("no"))
		v, _ := a.verdict()
		want(t, v, schema.Deny, "x:ok")
		if v.ExecutedHooks[0].Worker != "free" {
			t.Errorf("%+v", v.ExecutedHooks)
		}
	})
}

func TestJunkOnTheBeatSubjectsIsPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{}, hook("x", remote))
		for subject, data := range map[string]string{
			"hook.v1.beat.p.junk":        `{`,
			"hook.v1.beat.p.list":        `[]`,
			"hook.v1.beat.p.=2f":         `{"capacity":9}`,
			"hook.v1.beat.default.local": `{"capacity":9}`,
			"hook.v1.beat.q.true":        `{"capacity":9,"pool":"p","worker":"forged"}`,
		} {
			if err := f.shim.Publish(subject, []byte(data)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for _, p := range f.agg.Status().Pools {
			for _, w := range p.Workers {
				if p.Pool+"/"+w.Worker != "default/local" && p.Pool+"/"+w.Worker != "q/true" {
					t.Errorf("%s has a worker %s", p.Pool, w.Worker)
				}
			}
		}
	})
}

func TestAWorkersDeathEndsItsCallsAtOnce(t *testing.T) {
	cases := map[string]struct {
		hook  schema.Hook
		want  schema.Decision
		trail string
	}{
		"a hook that may not run twice passes":       {hook("x", remote), schema.Continue, "x:lost"},
		"a fail-closed hook that may not, is a deny": {hook("x", remote, failClosed), schema.Deny, "x:lost"},
		"a hook that may, runs on another worker":    {hook("x", remote, idempotent, failClosed), schema.Allow, "x:ok"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, library{}, c.hook)
				dies := f.worker("dies")
				a := f.send(event(schema.PreToolUse))
				dies.batch()
				other := f.worker("other")
				f.agg.Gone("dies")
				if c.hook.Idempotent {
					b, m := other.batch()
					other.answer(b, m, schema.Allowed())
				}
				v, after := a.verdict()
				want(t, v, c.want, c.trail)
				if after != 0 || len(other.got) != 0 {
					t.Errorf("after %v; the other worker was asked %d times", after, len(other.got))
				}
			})
		})
	}
}

func TestWhatADeadWorkersBeatsBroughtCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{}, hook("a", remote, idempotent), hook("b", remote, idempotent))
		dies, other := f.worker("dies"), f.worker("other")
		other.beat(schema.Beat{Capacity: 9, InFlight: 8})
		synctest.Wait()
		asked := f.send(event(schema.PreToolUse))
		b, _ := dies.batch()
		dies.beat(schema.Beat{Capacity: 9, InFlight: 1, Batches: []schema.BatchProgress{{Batch: b.Batch, Outcomes: []schema.Outcome{{Hook: 0, Result: schema.Allowed()}}}}})
		synctest.Wait()
		f.agg.Gone("dies")
		again, m := other.batch()
		if len(again.Hooks) != 1 || again.Hooks[0] != 1 || again.Batch == b.Batch {
			t.Errorf("%+v", again)
		}
		other.answer(again, m, schema.Result{})
		v, _ := asked.verdict()
		want(t, v, schema.Allow, "a:ok b:ok")
		if n := f.value("reruns_total", "pool=p"); n != 1 {
			t.Errorf("%v re-runs counted", n)
		}
	})
}

func TestALateAnswerIsCountedAndNotApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{}, hook("slow", remote, within(time.Second)), hook("then", remote, within(time.Second)))
		w := f.worker("w")
		a := f.send(event(schema.PreToolUse))
		b, m := w.batch()
		beating := func() {
			for range 20 {
				w.beat(schema.Beat{Capacity: 9, InFlight: 1, Batches: []schema.BatchProgress{{Batch: b.Batch}}})
				<-time.After(schema.BeatEvery)
			}
		}
		beating()
		v, after := a.verdict()
		want(t, v, schema.Continue, "slow:deadline then:deadline")
		if after > 2500*time.Millisecond {
			t.Errorf("after %v", after)
		}
		w.answer(b, m, schema.Denied("too late"))
		if !a.nothing() {
			t.Error("there was a second answer")
		}
		for _, h := range []string{"slow", "then"} {
			if late, missed := f.value("hook_outcomes_total", "hook="+h, "outcome=late"), f.value("hook_outcomes_total", "hook="+h, "outcome=deadline"); late != 1 || missed != 1 {
				t.Errorf("%s: %v late, %v at their deadline", h, late, missed)
			}
		}
	})
}

func TestACallKeepsTheVersionItBeganWith(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := func(h *schema.Hook) { h.Pool, h.Idempotent = "p", true }
		f := start(t, library{}, hook("first", remote), hook("second", other))
		w := f.worker("w")
		a := f.send(event(schema.PreToolUse))
		b, m := w.batch()
		f.activate(2, hook("new", remote))
		w.answer(b, m, schema.Result{})
		b, m = w.batch()
		if b.Version != 1 || len(b.Hooks) != 1 || b.Hooks[0] != 1 {
			t.Errorf("%+v", b)
		}
		w.answer(b, m, schema.Result{})
		v, _ := a.verdict()
		want(t, v, schema.Continue, "first:ok second:ok")
		a2 := f.send(event(schema.PreToolUse))
		b, m = w.batch()
		w.answer(b, m, schema.Result{})
		v2, _ := a2.verdict()
		want(t, v2, schema.Continue, "new:ok")
		if v.ConfigVersion != 1 || v2.ConfigVersion != 2 || f.agg.Version() != 2 {
			t.Errorf("versions %d, %d, %d", v.ConfigVersion, v2.ConfigVersion, f.agg.Version())
		}
	})
}

// The others are on the new version, and the one before may be dropped soon.
func TestABrokerThatCanNotUseWhatIsActiveLeavesEventsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{"yes": says(schema.Allowed())}, hook("yes"))
		for _, h := range []schema.Hook{
			hook("yes", at("PreCoffee")), hook("yes", matching("[")), hook("yes", func(h *schema.Hook) { h.When = "true" }),
		} {
			if err := f.agg.Activate(schema.Config{Version: 2, Hooks: []schema.Hook{h}}); err == nil || !strings.Contains(err.Error(), "cannot use config version 2") {
				t.Errorf("%v", err)
			}
		}
		if !f.send(event(schema.PreToolUse)).nothing() {
			t.Error("it answered")
		}
		if st := f.agg.Status(); !strings.Contains(st.Trouble, "this broker cannot use the active configuration") {
			t.Errorf("its status is %+v", st)
		}
		f.activate(3, hook("yes"))
		want(t, f.ask(event(schema.PreToolUse)), schema.Allow, "yes:ok")
	})
}

func TestBeforeTheFirstConfigurationNobodyListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		nc, shim := bustest.Connect(t, s, "broker"), bustest.Connect(t, s, "shim")
		agg, err := aggregator.Start(aggregator.Options{Events: nc})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := shim.RequestMsgWithContext(ctx, event(schema.PreToolUse)); !errors.Is(err, nats.ErrNoResponders) {
			t.Errorf("%v", err)
		}
		if st := agg.Status(); st.Ready || agg.Version() != 0 {
			t.Errorf("%+v", st)
		}
		if err := agg.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestDrainAnswersWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		f := start(t, library{"hangs": hangs(end)}, hook("hangs"))
		a := f.send(event(schema.PreToolUse))
		synctest.Wait()
		drained := make(chan error, 1)
		go func() { drained <- f.agg.Drain(t.Context()) }()
		<-time.After(5 * time.Second)
		if len(drained) != 0 {
			t.Error("it stopped with a call under way")
		}
		m := f.send(event(schema.PreToolUse))
		if r := <-m.replies; r.Header.Get("Status") != "503" {
			t.Errorf("a new event got %q", r.Data)
		}
		close(end)
		v, _ := a.verdict()
		want(t, v, schema.Deny, "hangs:ok")
		if err := <-drained; err != nil {
			t.Error(err)
		}
	})
}

func TestDrainGivesUpWhenItMust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, library{}, hook("x", remote, failClosed))
		w := f.worker("w")
		a := f.send(event(schema.PreToolUse))
		w.batch()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if err := f.agg.Drain(ctx); err == nil || !strings.Contains(err.Error(), "1 calls were still under way") {
			t.Errorf("%v", err)
		}
		v, after := a.verdict()
		want(t, v, schema.Deny, "x:lost")
		if after > 3500*time.Millisecond {
			t.Errorf("after %v", after)
		}
	})
}

func TestStartAndDrainFiftyTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		nc, shim := bustest.Connect(t, s, "broker"), bustest.Connect(t, s, "shim")
		for i := range 50 {
			agg, err := aggregator.Start(aggregator.Options{Events: nc})
			if err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 {
				if err := agg.Activate(schema.Config{Version: 1}); err != nil {
					t.Fatal(err)
				}
			}
			m := event(schema.PreToolUse)
			m.Reply = shim.NewInbox()
			if err := shim.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
			if err := agg.Drain(t.Context()); err != nil {
				t.Error(err)
			}
		}
		<-time.After(time.Second) // the micro framework takes its leave in the background
		if n := nc.NumSubscriptions(); n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}
