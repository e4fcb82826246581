package cel_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/cel"
)

func event(t schema.EventType, input string) *schema.Event {
	e := &schema.Event{HookType: t, Runtime: "claude", AgentID: "a1", ToolName: "Bash", ToolKind: schema.KindShell, Cwd: "/work", ToolInput: jsontext.Value(input)}
	if t == schema.PostToolUse {
		e.ToolOutput = jsontext.Value(`{"stdout":"token ghp_0123456789abcdefghijklmnopqrstuvwxyz"}`)
	}
	return e
}

// answer returns the result of a hook with options.
func answer(t *testing.T, e *schema.Event, options map[string]any) (schema.Result, error) {
	t.Helper()
	h, err := cel.New().Load(schema.Hook{Name: "h", Type: schema.CEL, Event: e.HookType, Options: options}, workers.Site{})
	if err != nil {
		t.Fatal(err)
	}
	return h.Handle(t.Context(), e)
}

func TestExpressionsDecide(t *testing.T) {
	const deletes = `action.commands.exists(c, c.name == "rm" && "r" in c.flags)`
	for _, c := range []struct {
		is      string
		event   schema.EventType
		input   string
		options map[string]any
		want    schema.Result
	}{
		{"deny", schema.PreToolUse, `{"command":"sudo rm -rf x"}`, map[string]any{"deny": deletes, "reason": `"no: " + action.paths[0].path`}, schema.Denied("no: /work/x")},
		{"not deny", schema.PreToolUse, `{"command":"echo rm -rf x"}`, map[string]any{"deny": deletes}, schema.Result{}},
		{"deny without a reason", schema.PreToolUse, `{}`, map[string]any{"deny": `true`}, schema.Denied(`the hook "h" decided deny about this call`)},
		{"deny before ask and allow", schema.PreToolUse, `{}`, map[string]any{"deny": `true`, "ask": `true`, "allow": `true`, "reason": `"r"`}, schema.Denied("r")},
		{"ask before allow", schema.PreToolUse, `{}`, map[string]any{"deny": `false`, "ask": `true`, "allow": `true`, "reason": `"r"`}, schema.Asked("r")},
		{"allow", schema.PreToolUse, `{}`, map[string]any{"ask": `false`, "allow": `agent == "a1"`}, schema.Allowed()},
		{"rewrite", schema.PreToolUse, `{"command":"ls"}`, map[string]any{"rewrite": `{"command": tool_input.command + " -l", "n": 1, "f": 1.5, "l": [true, null]}`},
			schema.Result{UpdatedInput: jsontext.Value(`{"command":"ls -l","f":1.5,"l":[true,null],"n":1}`)}},
		{"no rewrite", schema.PreToolUse, `{}`, map[string]any{"rewrite": `has(tool_input.command) ? dyn({"a": 1}) : dyn(null)`}, schema.Result{}},
		{"rewrite after a deny", schema.PreToolUse, `{}`, map[string]any{"deny": `true`, "reason": `"r"`, "rewrite": `{"a": 1}`, "inject": `"x"`}, schema.Denied("r")},
		{"rewrite of an output", schema.PostToolUse, `{}`, map[string]any{"rewrite": `secrets.found(tool_output.stdout) ? "removed" : tool_output.stdout`}, schema.Result{UpdatedOutput: jsontext.Value(`"removed"`)}},
		{"inject", schema.PostToolUse, `{}`, map[string]any{"inject": `secrets.found(tool_output.stdout) ? "Do not repeat secrets." : ""`},
			schema.Result{Injections: []schema.Injection{{Content: "Do not repeat secrets.", Strategy: schema.ToolResult}}}},
		{"inject nothing", schema.PostToolUse, `{}`, map[string]any{"inject": `""`}, schema.Result{}},
		{"fail at a model event", schema.BeforeLLMCall, `{}`, map[string]any{"deny": `true`, "reason": `"r"`}, schema.Result{Decision: schema.Fail, Reason: "r"}},
		{"a decision with a reason that fails", schema.PreToolUse, `{}`, map[string]any{"deny": `true`, "reason": `tool_input.absent`},
			schema.Result{Decision: schema.Deny, Reason: `the hook "h" decided deny about this call`, HookErrors: []string{`the expression "reason": the event has no absent; check it first with has(…), or write .?absent.orValue("")`}}},
	} {
		got, err := answer(t, event(c.event, c.input), c.options)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", c.is, err, diff)
		}
	}
}

func TestAnExpressionThatFailsIsAnErrorOfTheHook(t *testing.T) {
	for option, expr := range map[string]string{
		"deny": `tool_input.absent == 1`, "ask": `tool_input.absent`, "allow": `tool_input.list[5] == 1`, "inject": `tool_input.absent`, "rewrite": `tool_input.absent`,
	} {
		if _, err := answer(t, event(schema.PreToolUse, `{"list":[]}`), map[string]any{option: expr}); err == nil || !strings.Contains(err.Error(), `the expression "`+option+`"`) {
			t.Errorf("%s: %v", option, err)
		}
	}
}

func TestHooksThatCannotBeLoaded(t *testing.T) {
	for want, h := range map[string]schema.Hook{
		`has no option "denny"; write one of allow, ask, deny, inject, reason, rewrite`: {Options: map[string]any{"denny": `true`}},
		`the option "deny" of a hook of type cel is not a text`:                         {Options: map[string]any{"deny": true}},
		`the expression "deny": `:                            {Options: map[string]any{"deny": `comands == 1`}},
		`evaluates to a string, not to true or false`:        {Options: map[string]any{"deny": `tool_name`}},
		`evaluates to a bool, not to a text`:                 {Options: map[string]any{"deny": "true", "reason": `true`}},
		`needs expressions in its options, such as deny`:     {},
		`the expression "deny" refuses nothing at`:           {Event: schema.SessionEnd, Options: map[string]any{"deny": `true`}},
		`decide only at PreToolUse, not at PostToolUse`:      {Event: schema.PostToolUse, Options: map[string]any{"ask": `true`}},
		`the expression "rewrite" has nothing to rewrite at`: {Event: schema.SessionStart, Options: map[string]any{"rewrite": `1`}},
		`the expression "rewrite" needs readonly: false`:     {Readonly: true, Options: map[string]any{"rewrite": `1`}},
		`the expression "reason" needs one of`:               {Options: map[string]any{"reason": `"r"`}},
	} {
		if h.Event == "" {
			h.Event = schema.PreToolUse
		}
		if _, err := cel.New().Load(h, workers.Site{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, not %q", h.Options, err, want)
		}
	}
}

func BenchmarkHandle(b *testing.B) {
	h, err := cel.New().Load(schema.Hook{Event: schema.PreToolUse, Options: map[string]any{"deny": `action.commands.exists(c, c.name == "rm" && "r" in c.flags)`}}, workers.Site{})
	if err != nil {
		b.Fatal(err)
	}
	e := event(schema.PreToolUse, `{"command":"cd /work/app && go test ./... 2>&1 | tail -20"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Handle(b.Context(), e); err != nil {
			b.Fatal(err)
		}
	}
}
