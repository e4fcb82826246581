package aggregator_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/aggregator/control"
	"github.com/hookfabric/hookfabric/bus/aggregator/ratelimit"
	"github.com/hookfabric/hookfabric/bus/aggregator/stores"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// keyed starts a fabric whose brokers have a key.
func keyed(t *testing.T, opt aggregator.Options, hooks ...schema.Hook) *fabric {
	t.Helper()
	configs, err := state.OpenConfigs(t.Context(), bustest.JetStream(t, bustest.Start(t)), state.ConfigOptions{})
	if err != nil {
		t.Fatal(err)
	}
	opt.Configs = configs
	return startWith(t, opt, library{"x": says(schema.Allowed())}, hooks...)
}

func (f *fabric) policy(nonce string) (*schema.PolicyAnswer, *schema.Policy) {
	f.t.Helper()
	body, failed := f.request("policy._", `{"nonce":"`+nonce+`"}`)
	if failed != nil {
		f.t.Fatal(failed)
	}
	a := new(schema.PolicyAnswer)
	if err := schema.Unmarshal([]byte(body), a); err != nil {
		f.t.Fatal(err)
	}
	p, err := guard.Open(a, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	return a, p
}

func TestThePolicyIsThatOfTheActiveVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := keyed(t, aggregator.Options{}, hook("x", failClosed, matching("Bash")))
		a, p := f.policy("once")
		if p.Fabric != "fabric-1" || p.ConfigVersion != 1 || len(p.Hooks) != 1 || p.Hooks[0].Matcher != "Bash" || !p.Hooks[0].Guards || !guard.Fresh(a, "once") {
			t.Errorf("%+v", p)
		}
		if again, _ := f.policy(""); again.Document != a.Document || string(again.Key) != string(a.Key) || again.Fresh != nil {
			t.Error("the same version says something else")
		}
		f.activate(2, hook("x"))
		if a2, p := f.policy(""); p.ConfigVersion != 2 || len(p.Hooks) != 0 || string(a2.Key) != string(a.Key) {
			t.Errorf("%+v", p)
		}
		for request, want := range map[string]string{
			`policy.a {}`: "not of one agent", `policy._ []`: "cannot read the request", `policy._ {"nonce":"` + strings.Repeat("n", 65) + `"}`: "nonce",
		} {
			subject, body, _ := strings.Cut(request, " ")
			if _, failed := f.request(subject, body); failed == nil || failed.Code != schema.CodeBadRequest || !strings.Contains(failed.Message, want) {
				t.Errorf("%s: %v", request, failed)
			}
		}
	})
}

func TestABrokerThatLostTouchVouchesForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := keyed(t, aggregator.Options{Lease: lostLease{}}, hook("x"))
		if _, failed := f.request("policy._", "{}"); failed == nil || failed.Code != schema.CodeUnavailable {
			t.Errorf("%v", failed)
		}
	})
}

// lostLease is one that is not renewed any more.
type lostLease struct{ control.Lease }

func (lostLease) Wait(context.Context) error { return errors.New("nobody is there") }

// recorder is a record in memory.
type recorder struct {
	mu    sync.Mutex
	known map[string]bool
	err   error
}

func (r *recorder) Add(_ context.Context, calls []schema.Unjudged, first func(*schema.Unjudged)) (known int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range calls {
		if r.known[calls[i].EventID] {
			known++
			continue
		}
		r.known[calls[i].EventID] = true
		first(&calls[i])
	}
	return known, r.err
}

const refusedCall = `{"event_id":"` + eventID + `","time":"2026-11-21T10:00:00Z","agent":"somebody else","event":"PreToolUse","tool":"Bash","decision":"deny","why":"nobody was there"}`

func TestWhatNobodyJudgedIsCountedAndToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		f := startWith(t, aggregator.Options{Memory: stores.Memory{Unjudged: &recorder{known: map[string]bool{}}},
			Logger: slog.New(slog.NewTextHandler(&log, nil))}, library{})
		feed := make(chan *nats.Msg, 10)
		if _, err := f.shim.ChanSubscribe(bus.FeedsWildcard, feed); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		lost := strings.Replace(refusedCall, `"event"`, `"lost":3,"event"`, 1)
		lost = strings.Replace(lost, eventID[:8], "0199f3c2", 1)
		for i, want := range []string{`{"fabric":"fabric-1"}`, `{"fabric":"fabric-1","known":2}`} {
			if got, failed := f.request("record.a", `{"calls":[`+refusedCall+`,`+lost+`]}`); failed != nil || got != want {
				t.Errorf("time %d: %s, %v", i+1, got, failed)
			}
		}
		synctest.Wait()
		if d, l, c := f.value("unjudged_calls_total", "decision=deny"), f.value("unjudged_calls_total", "decision=lost"), f.value("unjudged_calls_total", "decision=continue"); d != 1 || l != 3 || c != 0 {
			t.Errorf("counted %v, %v, %v", d, l, c)
		}
		if n := strings.Count(log.String(), "a shim reported a call that no broker judged"); n != 2 || !strings.Contains(log.String(), "agent=a ") {
			t.Errorf("logged %d times: %s", n, &log)
		}
		if len(feed) != 2 {
			t.Fatalf("%d records on the feed", len(feed))
		}
		m := <-feed
		var rec schema.Record
		if err := schema.Unmarshal(m.Data, &rec); err != nil || m.Subject != "hook.v1.feed.a" || !rec.Unjudged || rec.Agent != "a" || rec.EventID != eventID ||
			rec.Decision != schema.Deny || rec.Tool != "Bash" || rec.Reason != "nobody was there" || rec.Time.Year() != 2026 {
			t.Errorf("%s: %s, %v", m.Subject, m.Data, err)
		}
	})
}

func TestTheRecordOfOneAgentLeavesRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{known: map[string]bool{}}
		f := startWith(t, aggregator.Options{Memory: stores.Memory{Unjudged: r}, Allowances: ratelimit.Allowances{UnjudgedBytes: 1000}}, library{})
		n := 0
		again := func(agent string) *schema.ControlError {
			t.Helper()
			call := strings.Replace(refusedCall, eventID[:8], fmt.Sprintf("%08d", n), 1)
			_, failed := f.request("record."+agent, `{"calls":[`+call+`]}`)
			return failed
		}
		handsIn := func(agent string) *schema.ControlError {
			t.Helper()
			n++
			return again(agent)
		}
		for i := range 50 {
			if failed := again("wild"); failed != nil {
				t.Fatalf("a call that is known takes no room, and is refused the time %d: %+v", i+1, failed)
			}
		}
		taken := 1
		for taken < 100 && handsIn("wild") == nil {
			taken++
		}
		if taken != 3 {
			t.Errorf("%d calls of about 280 bytes were taken, and 1000 bytes are allowed", taken)
		}
		if failed := handsIn("wild"); failed.Code != schema.CodeUnavailable || !strings.Contains(failed.Message, "--agent-unjudged-bytes") {
			t.Errorf("%+v", failed)
		}
		if failed := handsIn("quiet"); failed != nil {
			t.Errorf("another agent: %+v", failed)
		}
		if n := f.value("limited_total", "limit=unjudged"); n != 2 {
			t.Errorf("%v were counted", n)
		}
	})
}

func TestWhatMakesNoSenseIsNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{known: map[string]bool{}}
		f := startWith(t, aggregator.Options{Memory: stores.Memory{Unjudged: r}}, library{})
		change := func(old, new string) string { return `{"calls":[` + strings.Replace(refusedCall, old, new, 1) + `]}` }
		for body, want := range map[string]string{
			`[]`:                        "cannot read the request",
			change(eventID, "mine"):     "not a UUID",
			change("PreToolUse", "Pre"): "event is",
			change("deny", "maybe"):     "decision is",
			change("Bash", strings.Repeat("b", 1025)):                    "at most 1024",
			change(`"event"`, `"lost":-1,"event"`):                       "lost is -1",
			`{"calls":[` + strings.Repeat(refusedCall+",", 100) + `{}]}`: "at most 100",
		} {
			if _, failed := f.request("record.a", body); failed == nil || failed.Code != schema.CodeBadRequest || !strings.Contains(failed.Message, want) {
				t.Errorf("%.100s: %v", body, failed)
			}
		}
		if _, failed := f.request("record._", `{"calls":[`+refusedCall+`]}`); failed == nil || failed.Code != schema.CodeBadRequest {
			t.Errorf("of nobody: %v", failed)
		}
		if len(r.known) > 0 {
			t.Errorf("recorded %v", r.known)
		}
	})
}
