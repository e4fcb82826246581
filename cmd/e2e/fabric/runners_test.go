package fabric_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// loopEvents are the moments of an agent's loop.
var loopEvents = []schema.EventType{
	schema.BeforeLLMCall, schema.AfterLLMCall, schema.PreToolUse, schema.PostToolUse, schema.ToolError, schema.BeforeFinalResponse, schema.QueryEnd,
}

// TestHooksOfEveryKindRunAtEveryEvent asks hooks of each runner at all seven
// moments: each sees which one it is, and its effect comes back, in order.
func TestHooksOfEveryKindRunAtEveryEvent(t *testing.T) {
	needPython(t)
	t.Parallel()
	url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e schema.Event
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = schema.Unmarshal(body, &e)
		}
		if err != nil {
			t.Error(err)
		}
		answer(w, fmt.Sprintf(`{"effects":[{"set_flag":{"http":%q}}]}`, e.HookType))
	}))
	f := start(t, everywhere(
		`type: builtin, handler: golang, pool: go`, `type: command, handler: ./sees.sh`,
		`type: python, handler: seeing.sees`, `type: http, handler: "`+url+`"`,
	),
		script("sees.sh", `printf '{"effects": [{"set_flag": {"command": "%s"}}]}' "$HOOK_TYPE"`),
		program{"seeing.py", `
async def sees(event):
    return {"effects": [{"set_flag": {"python": event["hook_type"]}}]}
`})
	f.offer("w", handlers{"golang": func(_ context.Context, e *schema.Event) (schema.Result, error) {
		return schema.Result{Effects: []jsontext.Value{jsontext.Value(fmt.Sprintf(`{"set_flag":{"golang":%q}}`, e.HookType))}}, nil
	}})
	f.awaitWorker("go", "w")
	a := f.agent("agent1")
	for _, e := range loopEvents {
		v := a.ask(momentOf(e))
		var want, got []string
		for _, runner := range []string{"golang", "command", "python", "http"} {
			want = append(want, fmt.Sprintf(`{"set_flag":{%q:%q}}`, runner, e))
		}
		for _, effect := range v.Effects {
			if err := effect.Compact(); err != nil {
				t.Error(err)
			}
			got = append(got, string(effect))
		}
		if !slices.Equal(got, want) || len(v.HookErrors) != 0 {
			t.Errorf("%s: the effects are %s, not %s; %q", e, got, want, v.HookErrors)
		}
	}
}
