package fabric_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// talk returns a conversation of a number of messages, with some MiB in total.
func talk(messages int) []schema.Message {
	all := make([]schema.Message, messages)
	for i := range all {
		all[i] = schema.Message{Role: schema.RoleUser, Content: fmt.Sprint("message ", i, strings.Repeat(" and so on", 700))}
	}
	all[messages/2].Content = strings.Repeat("large ", 400_000)
	return all
}

// summed is what a hook says of a conversation: how many messages, how many characters.
func summed(all []schema.Message) string {
	n := 0
	for _, m := range all {
		n += len(m.Content)
	}
	return fmt.Sprintf("%d messages of %d", len(all), n)
}

// sums is that hook in Go.
func sums(_ context.Context, e *schema.Event) (r schema.Result, err error) {
	var all []schema.Message
	if len(e.History) > 0 {
		err = schema.Unmarshal(e.History, &all)
	}
	r.Injections = []schema.Injection{{Content: summed(all) + e.HistoryRef, Strategy: schema.UserMessage}}
	return r, err
}

var summing = []program{
	{"talks.py", `
def sums(event):
    history = event.to_dict().get("history") or []
    return {"inject": {"content": "%d messages of %d" % (len(history), sum(len(m["content"]) for m in history)), "strategy": "user_message"}}
`},
	{"sums.py", `#!/usr/bin/env python3
import json, sys
history = json.load(sys.stdin).get("history") or []
text = "%d messages of %d" % (len(history), sum(len(m["content"]) for m in history))
print(json.dumps({"inject": {"content": text, "strategy": "user_message"}}))
`},
}

// Hooks of every kind see the conversation that they need, and no other does.
func TestHooksOfAllKindsSeeTheConversationThatTheyNeed(t *testing.T) {
	needPython(t)
	t.Parallel()
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e schema.Event
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = schema.Unmarshal(body, &e)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		res, _ := sums(r.Context(), &e)
		answer(w, fmt.Sprintf(`{"inject":{"content":%q,"strategy":"user_message"}}`, res.Injections[0].Content))
	}))
	f := start(t, strings.ReplaceAll(`
hooks:
  BeforeFinalResponse:
    - {name: function, handler: talks.sums, needs: [history]}
    - {name: program, handler: ./sums.py, needs: [history], readonly: true}
    - {name: server, type: http, handler: $, needs: [history]}
    - {name: go, type: builtin, handler: sums, pool: go, needs: [history], readonly: true}
    - {name: blind, type: builtin, handler: sums, pool: go, readonly: true}
  AfterLLMCall:
    - {name: other, type: builtin, handler: sums, pool: go}
`, "$", url), summing...)
	f.offer("one", handlers{"sums": sums})
	f.offer("two", handlers{"sums": sums})
	var called atomic.Int32
	for _, n := range []int{1, 10, 300, 301} {
		all := talk(n)
		history := client.History(func() []schema.Message { called.Add(1); return all })
		v, err := f.client.Ask(t.Context(), &schema.Event{HookType: schema.BeforeFinalResponse, AgentID: "a", Message: []byte(`"done"`)}, history)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"function": summed(all), "program": summed(all), "server": summed(all), "go": summed(all), "blind": summed(nil)}
		got := map[string]string{}
		for _, in := range v.Injections {
			got[in.Hook] = in.Content
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d messages (-want +got):\n%s%q", n, diff, v.HookErrors)
		}
		if v, err = f.client.Ask(t.Context(), &schema.Event{HookType: schema.AfterLLMCall, AgentID: "a", Message: []byte(`"done"`)}, history); err != nil ||
			len(v.Injections) != 1 || v.Injections[0].Content != summed(nil) {
			t.Errorf("%v: %+v", err, v)
		}
	}
	if called.Load() != 4 {
		t.Errorf("the conversation was asked for %d times", called.Load())
	}
}

// What cannot be had is a failure of the hook: its policy decides.
func TestAConversationThatIsGoneIsAFailureOfTheHook(t *testing.T) {
	inBubbles(t, []scenario{
		{"without fail_closed the agent goes on, and is told", func(t *testing.T) {
			v := withoutPart(t, "false")
			if v.Decision != schema.Continue || len(v.HookErrors) != 1 || !strings.Contains(v.HookErrors[0], schema.HistoryMissing) {
				t.Errorf("%+v", v)
			}
		}},
		{"with fail_closed it does not", func(t *testing.T) {
			if v := withoutPart(t, "true"); v.Decision != schema.Fail || !strings.Contains(v.Reason, schema.HistoryMissing) {
				t.Errorf("%+v", v)
			}
		}},
	})
}

// withoutPart sends an event whose conversation has a missing part.
func withoutPart(t *testing.T, failClosed string) *schema.Verdict {
	f := start(t, `
hooks:
  BeforeFinalResponse:
    - {name: go, type: builtin, handler: sums, pool: go, needs: [history], fail_closed: `+failClosed+`}
`)
	f.serve("one", handlers{"sums": sums})
	v, err := f.client.Ask(t.Context(), &schema.Event{
		HookType: schema.BeforeFinalResponse, AgentID: "a", Message: []byte(`"done"`), History: []byte(`[]`),
		HistoryRef: schema.HistoryRef([]schema.Object{{Digest: "sha256-" + strings.Repeat("00", 32), Size: 100}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}
