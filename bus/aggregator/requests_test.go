package aggregator_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/aggregator/ratelimit"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

// TestRequestsOfAgentsDoNotHoldUpOperators floods the broker with requests of agents. Operators are
// answered on a connection of their own, and few of the requests over a limit are answered.
func TestRequestsOfAgentsDoNotHoldUpOperators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		requests := bustest.Connect(t, s, "requests")
		m := newMemory()
		f := startOn(t, s, aggregator.Options{Memory: m.all(), Control: bustest.Connect(t, s, "control"), Requests: requests,
			PerAgent: ratelimit.Limits{Calls: 64, Requests: 1}}, library{})
		inbox := f.shim.NewInbox()
		answers := make(chan *nats.Msg, 10_000)
		if _, err := f.shim.ChanSubscribe(inbox, answers); err != nil {
			t.Fatal(err)
		}
		for range 5000 {
			if err := f.shim.PublishRequest("hook.v1.ctl.fetch.wild", inbox, []byte(`{"digest":"none"}`)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		served, refused := 0, 0
		for len(answers) > 0 {
			e := new(schema.ControlError)
			if err := schema.Unmarshal((<-answers).Data, e); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(e.Message, "--agent-requests") {
				refused++
			} else {
				served++
			}
		}
		if served != 10 || refused != 20 {
			t.Errorf("%d were served and %d refused aloud; at once 10 may be of a limit of 1, and 20 are told so", served, refused)
		}
		if n := f.value("limited_total", "limit=requests"); n != 4990 {
			t.Errorf("%v were counted", n)
		}
		if got := m.recorded("part"); len(got) > 0 {
			t.Errorf("%q", got)
		}
		requests.Close() // as by a flood
		if _, failed := f.request("status._", ""); failed != nil {
			t.Error(failed)
		}
		if _, failed := f.request("inject.a", `{"content":"hello"}`); failed != nil {
			t.Error(failed)
		}
	})
}

func TestControlRequestsAreBoundedByWhomTheyAreOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		opt := once()
		opt.Memory = m.all()
		f := startWith(t, opt, library{})
		for request, others := range map[string][]string{
			`ack.a {"events":[]}`:                                {`inject.a {"content":"x"}`, `ack.b {"events":[]}`},
			`fetch.c {"digest":"none"}`:                          {`inject.c {"content":"x"}`},
			`inject.d {"content":"x"}`:                           {`ack.d {"events":[]}`, `inject.e {"content":"x"}`},
			`inject._ {"content":"x","all":true,"producer":"p"}`: {`inject._ {"content":"x","all":true}`, `inject.p {"content":"x"}`},
		} {
			ask := func(request string) *schema.ControlError {
				subject, body, _ := strings.Cut(request, " ")
				_, failed := f.request(subject, body)
				return failed
			}
			var over *schema.ControlError
			n := 0
			for over == nil || over.RetryAfter == 0 {
				if over = ask(request); n > 100 {
					t.Fatalf("%s: %d are served at once", request, n)
				}
				n++
			}
			if n != 11 || over.Code != schema.CodeUnavailable || over.RetryAfter.Std() != 200*time.Millisecond || !strings.Contains(over.Message, "--agent-rate") {
				t.Errorf("%s: the %dth: %+v", request, n, over)
			}
			for _, other := range others {
				if failed := ask(other); failed != nil && failed.RetryAfter > 0 {
					t.Errorf("after too many of %s, %s: %v", request, other, failed)
				}
			}
			<-time.After(over.RetryAfter.Std())
			if failed := ask(request); failed != nil && failed.RetryAfter > 0 {
				t.Errorf("%s after the announced time: %v", request, failed)
			}
		}
		if n := f.value("limited_total", "limit=requests"); n != 4 {
			t.Errorf("%v counted", n)
		}
		for range 20 {
			if _, failed := f.request("status._", "{}"); failed != nil {
				t.Fatal(failed)
			}
		}
	})
}

// TestRequestsForThePolicyAreBounded checks that requests for the policy, which any client may
// send, count for the inbox of the reply.
func TestRequestsForThePolicyAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startWith(t, once(), library{"x": says(schema.Allowed())}, hook("x"))
		for n := 1; ; n++ {
			_, failed := f.request("policy._", "{}")
			if failed != nil && failed.RetryAfter > 0 {
				if n != 11 || !strings.Contains(failed.Message, "with answers on the inbox") {
					t.Errorf("the %dth: %v", n, failed)
				}
				return
			}
			if n > 100 {
				t.Fatalf("%d are served at once", n)
			}
		}
	})
}

// TestTooManyRequestsForThePolicyNameTheCredentials checks that the status names a refused client
// by its credentials if they are known, together with the other limits that its agent exceeds, and
// otherwise by its inbox.
func TestTooManyRequestsForThePolicyNameTheCredentials(t *testing.T) {
	for name, c := range map[string]struct{ inbox, status, says string }{
		"credentials that are known":     {"_INBOX_UALICE", "alice", `by the credentials of "alice"`},
		"credentials that are not known": {"_INBOX_UBOB", "_INBOX_UBOB", `with answers on the inbox "_INBOX_UBOB"`},
		"no credentials":                 {"_INBOX.x", "_INBOX.x", `with answers on the inbox "_INBOX.x"`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt := once()
				opt.CredentialName = func(key string) string { return map[string]string{"UALICE": "alice"}[key] }
				f := startWith(t, opt, library{"x": says(schema.Allowed())}, hook("x"))
				answers := make(chan *nats.Msg, 100)
				if _, err := f.shim.ChanSubscribe(c.inbox+".>", answers); err != nil {
					t.Fatal(err)
				}
				for range 13 {
					if err := f.shim.PublishRequest("hook.v1.ctl.policy._", c.inbox+".1", []byte(`{}`)); err != nil {
						t.Fatal(err)
					}
				}
				var refused []string
				for range 13 {
					if m := <-answers; m.Header.Get(schema.HeaderRetryAfter) != "" {
						refused = append(refused, m.Header.Get(schema.HeaderServiceError))
					}
				}
				if len(refused) != 3 || !strings.Contains(refused[0], c.says) {
					t.Errorf("refused: %q", refused)
				}
				if l := f.agg.Status().Limited; len(l) != 1 || l[0].Name != c.status || l[0].Limit != "requests" || l[0].Refused != 3 {
					t.Errorf("the status says %+v", l)
				}
			})
		})
	}
}
