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

// slots is how many calls the aggregator of these tests has under way, and works how
// long its hook takes for each.
const (
	slots = 4
	works = 100 * time.Millisecond
)

// narrow is a fabric that judges slots calls per works, and no more.
func narrow(t *testing.T, change ...func(*schema.Hook)) *fabric {
	t.Helper()
	slow := func(context.Context, *schema.Event) (schema.Result, error) {
		<-time.After(works)
		return schema.Allowed(), nil
	}
	return startWith(t, aggregator.Options{Calls: slots}, library{"guard": slow}, hook("guard", change...))
}

// left is a question whose shim waits for so long.
func left(d time.Duration) *nats.Msg {
	m := event(schema.PreToolUse)
	m.Header.Set(schema.HeaderLeft, d.String())
	return m
}

// heard is what came of many questions.
type heard struct{ judged, refused, unanswered int }

// hear collects that, a minute after the last was asked. Whatever was allowed was judged.
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
		switch {
		case len(v.ExecutedHooks) != 1:
			t.Fatalf("%+v", v)
		case v.ExecutedHooks[0].Outcome == schema.OK:
			h.judged++
		case v.Decision == schema.Deny && v.ExecutedHooks[0].Outcome == schema.Busy && strings.Contains(v.Reason, "try it again later"):
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
