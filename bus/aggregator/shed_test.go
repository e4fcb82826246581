package aggregator_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/schema"
)

// slots is how many calls the aggregator of these tests runs at once, and works how long its hook
// takes for each.
const (
	slots = 4
	works = 100 * time.Millisecond
)

// narrow starts a fabric that judges slots calls per works, and no more.
func narrow(t *testing.T, change ...func(*schema.Hook)) *fabric {
	t.Helper()
	return narrowWith(t, aggregator.Options{}, change...)
}

func narrowWith(t *testing.T, opt aggregator.Options, change ...func(*schema.Hook)) *fabric {
	t.Helper()
	opt.Calls = slots
	slow := func(context.Context, *schema.Event) (schema.Result, error) {
		<-time.After(works)
		return schema.Allowed(), nil
	}
	return startWith(t, opt, library{"guard": slow}, hook("guard", change...))
}

// left returns a question whose shim waits for d.
func left(d time.Duration) *nats.Msg {
	m := event(schema.PreToolUse)
	m.Header.Set(schema.HeaderLeft, d.String())
	return m
}

// heard counts the answers to many questions.
type heard struct{ judged, refused, unanswered int }

// hear collects the answers, a minute after the last question. An allowed call was judged.
func hear(t *testing.T, all []*asking, within time.Duration) (h heard) {
	t.Helper()
	<-after1m()
	for _, a := range all {
		if len(a.replies) == 0 {
			h.unanswered++
			continue
		}
		v, after := a.verdict()
		if after > within {
			t.Errorf("an answer after %v", after)
		}
		a.ended, a.refused = after, v.Decision == schema.Deny
		switch {
		case len(v.ExecutedHooks) != 1:
			t.Fatalf("%+v", v)
		case v.ExecutedHooks[0].Outcome == schema.OK:
			h.judged++
		case v.Decision == schema.Deny && v.ExecutedHooks[0].Outcome == schema.Busy && strings.Contains(v.Reason, "try again later"):
			h.refused++
		default:
			t.Errorf("%+v", v)
		}
	}
	return h
}

func TestUnderTwiceItsLoadAnAggregatorJudgesWhatItCan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := narrow(t, failClosed)
		const long = 10 * time.Second
		var all []*asking
		for start := time.Now(); time.Since(start) < long; {
			all = append(all, f.send(left(2*time.Second)))
			<-time.After(works / slots / 2)
		}
		<-time.After(time.Second)
		if v, after := f.send(left(2 * time.Second)).verdict(); after != works {
			t.Errorf("a second after the load a call takes %v: %+v", after, v)
		}
		h := hear(t, all, 2*time.Second)
		can := int(long / works * slots)
		if h.judged < can*9/10 || h.judged+h.refused != len(all) {
			t.Errorf("%+v of %d, of which %d can be judged", h, len(all), can)
		}
		if n := f.value("shed_total", "cause=busy"); n != float64(h.refused) {
			t.Errorf("%v counted, %d refused", n, h.refused)
		}
		if n := f.value("fail_closed_total", "cause=busy", "hook=guard"); n != float64(h.refused) {
			t.Errorf("%v counted for the hook, %d refused", n, h.refused)
		}
	})
}

func TestWhatNobodyWaitsForAnyMoreIsNotAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := narrow(t, failClosed)
		var all []*asking
		for i := range 10 * slots {
			patience := works / 2
			if i < slots {
				patience = time.Second
			}
			all = append(all, f.send(left(patience)))
		}
		h := hear(t, all, works)
		if h.judged != slots || h.unanswered != len(all)-slots {
			t.Errorf("%+v of %d", h, len(all))
		}
		if n := f.value("shed_total", "cause=stale"); n != float64(h.unanswered) {
			t.Errorf("%v counted, %d had no answer", n, h.unanswered)
		}
	})
}

func TestABurstThatClearsInTimeIsJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := narrow(t)
		var all []*asking
		for range 5 * slots {
			all = append(all, f.send(left(30*time.Second)))
		}
		if h := hear(t, all, 5*works); h.judged != len(all) {
			t.Errorf("%+v of %d", h, len(all))
		}
		for _, cause := range []string{"busy", "stale"} {
			if n := f.value("shed_total", "cause="+cause); n != 0 {
				t.Errorf("%s: %v", cause, n)
			}
		}
	})
}

// TestALongBurstIsJudgedIfItsCallsHaveTheTime checks a burst that takes longer than a shim waits
// without a heartbeat. Its calls are judged if they have the time, and their shims get heartbeats
// until then.
func TestALongBurstIsJudgedIfItsCallsHaveTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := narrow(t, failClosed)
		const long = 4 * time.Second
		var all []*asking
		for range int(long / works * slots) {
			all = append(all, f.send(left(30*time.Second)))
		}
		if h := hear(t, all, long+works); h.judged != len(all) {
			t.Errorf("%+v of %d", h, len(all))
		}
		for _, a := range all {
			last := time.Duration(0)
			for _, at := range append(a.beats, a.ended) {
				if at-last > 2*schema.BeatEvery {
					t.Fatalf("nothing came from %v to %v", last, at)
				}
				last = at
			}
			if len(a.beats) > int(long/schema.BeatEvery)+1 {
				t.Errorf("%d beats", len(a.beats))
			}
		}
		if n := f.value("shed_total", "cause=busy") + f.value("shed_total", "cause=stale"); n != 0 {
			t.Errorf("%v were sent away", n)
		}
	})
}

func TestWhatWillNotBeJudgedInTimeIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := narrow(t, failClosed)
		const patience = 8 * time.Second
		can := int(patience / 2 / works * slots)
		var all []*asking
		for range 5 * can {
			all = append(all, f.send(left(patience)))
		}
		h := hear(t, all, patience)
		if h.unanswered > 0 || h.judged < can*9/10 {
			t.Errorf("%+v, and %d can be judged in half of their time", h, can)
		}
		for _, a := range all {
			if a.refused && a.ended > time.Second {
				t.Fatalf("it was refused after %v", a.ended)
			}
		}
	})
}

// However long calls may wait: in an overload that does not end they would only wait, and
// all that come after its end, too.
func TestInALongOverloadNobodyWaitsForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := narrow(t, failClosed)
		const long = 30 * time.Second
		var all []*asking
		for start := time.Now(); time.Since(start) < long; {
			all = append(all, f.send(left(time.Minute)))
			<-time.After(works / slots / 2)
		}
		<-time.After(time.Second)
		if v, after := f.send(left(time.Minute)).verdict(); after != works {
			t.Errorf("a second after the load a call takes %v: %+v", after, v)
		}
		h := hear(t, all, time.Minute)
		if can := int(long / works * slots); h.judged < can*95/100 || h.judged+h.refused != len(all) {
			t.Errorf("%+v of %d, of which %d can be judged", h, len(all), can)
		}
		for _, a := range all[len(all)/2:] {
			if a.ended > time.Second {
				t.Fatalf("one took %v", a.ended)
			}
		}
	})
}

func TestWhoWaitsWhileNothingIsDoneIsRefusedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := func(ctx context.Context, _ *schema.Event) (schema.Result, error) {
			<-ctx.Done()
			return schema.Result{}, ctx.Err()
		}
		f := startWith(t, aggregator.Options{Calls: slots}, library{"guard": stuck}, hook("guard", failClosed))
		for range slots {
			f.send(left(time.Minute))
		}
		<-time.After(time.Second)
		v, after := f.send(left(8 * time.Second)).verdict()
		if v.Decision != schema.Deny || after < 4*time.Second || after > 4500*time.Millisecond {
			t.Errorf("%v after %v: %s", v.Decision, after, v.Reason)
		}
	})
}

func TestWhoeverIsUnguardedPassesWhenThereIsTooMuchToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := narrow(t, matching("Bash"))
		var all []*asking
		for range 10 * slots {
			all = append(all, f.send(left(time.Second)))
		}
		free := left(time.Second)
		free.Header.Set(schema.HeaderTool, "Read")
		free.Data = []byte(strings.Replace(string(free.Data), "Bash", "Read", 1))
		if v, _ := f.send(free).verdict(); v.Decision != schema.Continue || len(v.HookErrors) > 0 {
			t.Errorf("what no hook matches: %+v", v)
		}
		<-after1m()
		passed := 0
		for _, a := range all {
			v, _ := a.verdict()
			if v.Decision != schema.Continue && v.Decision != schema.Allow {
				t.Errorf("%+v", v)
			}
			if len(v.HookErrors) > 0 {
				passed++
			}
		}
		if n := f.value("fail_open_total", "cause=busy", "hook=guard"); passed == 0 || n != float64(passed) {
			t.Errorf("%v counted, %d passed", n, passed)
		}
	})
}
