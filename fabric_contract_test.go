package hookfabric_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/dispatch/model/contract"
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

// The contract's table, once more: over the bus, with a worker of somebody else's.
func TestEveryAnswerComesToWhatTheContractSaysOverTheBus(t *testing.T) {
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
		cells := contract.Cells()
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
