package fabric_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

// momentOf is an event of that type with all that it is about.
func momentOf(t schema.EventType) *schema.Event {
	e := &schema.Event{HookType: t, Iteration: 1}
	if t.HasTool() {
		e.ToolName, e.ToolInput, e.ToolUseID = "Bash", jsontext.Value(`{"n":0}`), "call_1"
	}
	switch t {
	case schema.UserPromptSubmit:
		e.Prompt = "do it"
	case schema.AfterLLMCall, schema.BeforeFinalResponse:
		e.Message = jsontext.Value(`"0"`)
	case schema.PostToolUse:
		e.ToolOutput = jsontext.Value(`"0"`)
	case schema.ToolError:
		e.Error = "the disk is full"
	case schema.QueryEnd:
		e.Response = jsontext.Value(`"0"`)
	}
	return e
}

// answersWhatItIsTold is a hook that answers what the event's label says, as if a
// program had written it.
func answersWhatItIsTold(_ context.Context, e *schema.Event) (schema.Result, error) {
	return schema.DecodeResult(e.HookType, []byte(e.Labels["answer"]))
}

// The contract's table holds over the bus, too, with a worker of a user.
func TestEveryAnswerHasTheOutcomeOfTheContractOverTheBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var yaml strings.Builder
		yaml.WriteString("presets: []\nagents:\n")
		for _, closed := range []bool{false, true} {
			fmt.Fprintf(&yaml, "  - id: closed-%t\n    hooks:\n", closed)
			for _, e := range schema.EventTypes() {
				fmt.Fprintf(&yaml, "      %s: [{type: builtin, handler: says, pool: go, readonly: false, fail_closed: %t}]\n", e, closed)
			}
		}
		f := start(t, yaml.String())
		f.serve("w", handlers{"says": answersWhatItIsTold})
		cells := bustest.Cells()
		for _, c := range cells {
			e := momentOf(c.Event)
			e.AgentID, e.SessionID, e.Labels = fmt.Sprintf("closed-%t", c.Closed), "session 1", map[string]string{"answer": c.Answer}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			v, err := f.client.Ask(ctx, e)
			cancel()
			if err != nil {
				t.Fatalf("%s: %v", c, err)
			}
			if d := c.Diff(v); d != "" {
				t.Errorf("%s: %s\n%s", c, c.Answer, d)
			}
		}
		if want := 10 * 12 * 7 * 2; len(cells) != want {
			t.Errorf("the table has %d cells; want %d", len(cells), want)
		}
	})
}

// The names that other systems give to events are read in subjects and bodies, as in hooks.yaml.
func TestEventsHaveTheirSeedNamesOnTheWire(t *testing.T) {
	names := map[string]schema.EventType{
		"BEFORE_LLM_CALL": schema.BeforeLLMCall, "AFTER_LLM_CALL": schema.AfterLLMCall, "BEFORE_TOOL_EXECUTION": schema.PreToolUse,
		"AFTER_TOOL_EXECUTION": schema.PostToolUse, "ON_TOOL_ERROR": schema.ToolError,
		"BEFORE_FINAL_RESPONSE": schema.BeforeFinalResponse, "QUERY_END": schema.QueryEnd, "Stop": schema.BeforeFinalResponse,
	}
	synctest.Test(t, func(t *testing.T) {
		f := start(t, everywhere(`type: builtin, handler: says, pool: go, idempotent: true`))
		f.serve("w", handlers{"says": func(_ context.Context, e *schema.Event) (schema.Result, error) {
			return schema.Injected(string(e.HookType), schema.ToolResult), nil
		}})
		nc := f.connect("shim")
		for name, want := range names {
			body, err := schema.Marshal(momentOf(want))
			if err != nil {
				t.Fatal(err)
			}
			body = []byte(strings.Replace(string(body), `"`+string(want)+`"`, `"`+name+`"`, 1))
			for attempt, again := range []string{"", ".again"} {
				r := schema.Routing{Session: "session 1", Tool: momentOf(want).ToolName, ID: uuid.NewString()}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				m, err := nc.RequestMsgWithContext(ctx, bus.EventMsg("hook.v1.event.agent1."+name+again, r, attempt+1, 30*time.Second, nil, body))
				cancel()
				if err != nil {
					t.Fatalf("%s%s: %v", name, again, err)
				}
				var v schema.Verdict
				if err := schema.Unmarshal(m.Data, &v); err != nil {
					t.Fatal(err)
				}
				if len(v.Injections) != 1 || v.Injections[0].Content != string(want) || len(v.HookErrors) != 0 {
					t.Errorf("%s%s: %+v", name, again, v)
				}
			}
		}
	})
}
