package fabric_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

const bash = `{"command":"ls"}`

// adds is a hook that adds a member to the tool's input.
func adds(member string) workers.HandlerFunc {
	return func(_ context.Context, e *schema.Event) (schema.Result, error) {
		in := string(e.ToolInput)
		return schema.Rewritten(jsontext.Value(fmt.Sprintf(`%s,"%s":1}`, in[:len(in)-1], member))), nil
	}
}

func TestScenarios(t *testing.T) {
	inBubbles(t, slices.Concat(whenHooksFire, whoseHooksFire, whatHooksDecide, whatHooksInject))
}

var whenHooksFire = []scenario{
	{"PreToolUse fires before execution; PostToolUse after success", func(t *testing.T) {
		f := start(t, `
hooks:
  PreToolUse:  [{type: builtin, handler: sees, pool: go}]
  PostToolUse: [{type: builtin, handler: sees, pool: go}]
`)
		var mu sync.Mutex
		var order []string
		note := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, s)
		}
		f.serve("w", handlers{"sees": func(_ context.Context, e *schema.Event) (schema.Result, error) {
			note(fmt.Sprintf("%s %s %s %s", e.HookType, e.ToolName, e.ToolInput, string(e.ToolOutput)))
			return schema.Result{}, nil
		}})
		a := f.agent("agent1")
		a.tools["Bash"] = func(string) (string, error) { note("Bash runs"); return `"done"`, nil }
		a.call("Bash", bash)
		want := []string{`PreToolUse Bash {"command":"ls"} `, "Bash runs", `PostToolUse Bash {"command":"ls"} "done"`}
		if !slices.Equal(order, want) {
			t.Errorf("%q", order)
		}
		order = nil
		a.call("Breaks", `{}`)
		if want := []string{"PreToolUse Breaks {} "}; !slices.Equal(order, want) {
			t.Errorf("around a tool that fails: %q", order)
		}
	}},
	{"wildcard", func(t *testing.T) {
		f := start(t, `{hooks: {PreToolUse: [{type: builtin, handler: deny, matcher: "*", options: {reason: no}}]}}`)
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.call("mcp__notes__add", `{}`)
		a.want("error no", "error no")
	}},
	{"Write|Edit", func(t *testing.T) {
		f := start(t, `{hooks: {PreToolUse: [{type: builtin, handler: deny, matcher: "Write|Edit", options: {reason: no}}]}}`)
		a := f.agent("agent1")
		for _, tool := range []string{"Write", "Edit", "Bash"} {
			a.call(tool, `{}`)
		}
		a.want("error no", "error no", "Bash ran with {}", `result "done"`)
	}},
	{"no matcher matches all", func(t *testing.T) {
		f := start(t, `{hooks: {PreToolUse: [{type: builtin, handler: deny, options: {reason: no}}]}}`)
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.call("mcp__notes__add", `{}`)
		a.want("error no", "error no")
	}},
}

// perAgent is a global hook and one of agent1, which may override.
const perAgent = `
hooks:
  PreToolUse:
    - {name: everyone, type: builtin, handler: everyone, pool: go}
agents:
  - id: agent1
    backend:
      hooks:
        PreToolUse:
`

var whoseHooksFire = []scenario{
	{"per-agent extends", func(t *testing.T) {
		f := start(t, perAgent+`          - {name: own, type: builtin, handler: own, pool: go}`)
		f.serve("w", handlers{"everyone": adds("everyone"), "own": adds("own")})
		one, two := f.agent("agent1"), f.agent("agent2")
		one.call("Bash", bash)
		two.call("Bash", bash)
		one.want(`Bash ran with {"command":"ls","everyone":1,"own":1}`, `result "done"`)
		two.want(`Bash ran with {"command":"ls","everyone":1}`, `result "done"`)
	}},
	{"per-agent overrides", func(t *testing.T) {
		f := start(t, perAgent+`
          override: true
          hooks:
            - {name: own, type: builtin, handler: own, pool: go}`)
		f.serve("w", handlers{"everyone": adds("everyone"), "own": adds("own")})
		one, two := f.agent("agent1"), f.agent("agent2")
		one.call("Bash", bash)
		two.call("Bash", bash)
		one.want(`Bash ran with {"command":"ls","own":1}`, `result "done"`)
		two.want(`Bash ran with {"command":"ls","everyone":1}`, `result "done"`)
	}},
}

var whatHooksDecide = []scenario{
	{"deny: the tool does not run and the agent gets the reason", func(t *testing.T) {
		f := start(t, `{hooks: {PreToolUse: [{type: builtin, handler: guard, pool: go}]}}`)
		f.serve("w", handlers{"guard": does(schema.Denied("rm is not for you"))})
		a := f.agent("agent1")
		a.call("Bash", `{"command":"rm -rf /"}`)
		a.want("error rm is not for you")
	}},
	{"updated input reaches the tool", func(t *testing.T) {
		f := start(t, `{hooks: {PreToolUse: [{type: builtin, handler: safe, pool: go}]}}`)
		f.serve("w", handlers{"safe": does(schema.Rewritten(jsontext.Value(`{"command":"ls -l"}`)))})
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.want(`Bash ran with {"command":"ls -l"}`, `result "done"`)
	}},
	{"allow or empty result passes", func(t *testing.T) {
		f := start(t, `{hooks: {PreToolUse: [{type: builtin, handler: yes, pool: go, matcher: Bash}, {type: builtin, handler: nothing, pool: go, matcher: Edit}]}}`)
		f.serve("w", handlers{"yes": does(schema.Allowed()), "nothing": does(schema.Result{})})
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.call("Edit", `{}`)
		a.want(`Bash ran with {"command":"ls"}`, `result "done"`, "Edit ran with {}", `result "done"`)
		if a.verdicts[0].Decision != schema.Allow || a.verdicts[2].Decision != schema.Continue {
			t.Errorf("%s, %s", a.verdicts[0].Decision, a.verdicts[2].Decision)
		}
	}},
	{"any deny denies", func(t *testing.T) {
		for _, order := range []string{"yes no yes", "no yes yes", "yes yes no"} {
			var hooks string
			for h := range strings.FieldsSeq(order) {
				hooks += fmt.Sprintf("{type: builtin, handler: %q, pool: go}, ", h)
			}
			f := start(t, `{hooks: {PreToolUse: [`+hooks+`]}}`)
			f.serve("w", handlers{"yes": does(schema.Allowed()), "no": does(schema.Denied("one says no"))})
			a := f.agent("agent1")
			a.call("Bash", bash)
			a.want("error one says no")
		}
	}},
	{"inputs chain", func(t *testing.T) {
		f := start(t, `
hooks:
  PreToolUse:
    - {type: builtin, handler: first, pool: go}
    - {type: builtin, handler: second, pool: go, idempotent: true}
    - {type: builtin, handler: third, pool: go}
`)
		f.serve("w", handlers{"first": adds("first"), "second": adds("second"), "third": adds("third")})
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.want(`Bash ran with {"command":"ls","first":1,"second":1,"third":1}`, `result "done"`)
	}},
	{"a deny keeps the trail before it", func(t *testing.T) {
		f := start(t, `
hooks:
  PreToolUse:
    - {name: tells, type: builtin, handler: inject_text, options: {text: think first}}
    - {name: breaks, type: builtin, handler: breaks, pool: go}
    - {name: rewrites, type: builtin, handler: rewrites, pool: go}
    - {name: denies, type: builtin, handler: deny, options: {reason: no}}
    - {name: never, type: builtin, handler: never, pool: go}
`)
		f.serve("w", handlers{
			"breaks": func(context.Context, *schema.Event) (schema.Result, error) { panic("ouch") }, "rewrites": adds("x"),
			"never": func(context.Context, *schema.Event) (schema.Result, error) {
				t.Error("a hook behind a deny ran")
				return schema.Result{}, nil
			},
		})
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.want("error no + think first")
		a.wantTrail(0, "tells:ok breaks:error rewrites:ok denies:ok")
		a.wantErrors(0, 1, `hook "breaks": panicked: ouch`)
		if v := a.verdicts[0]; v.UpdatedInput != nil {
			t.Errorf("a deny carries the input %s", v.UpdatedInput)
		}
	}},
	{"a PostToolUse deny drops nothing", func(t *testing.T) {
		f := start(t, `
hooks:
  PostToolUse:
    - {name: first, type: builtin, handler: inject_text, options: {text: one}}
    - {name: denies, type: builtin, handler: deny, options: {reason: that was wrong}}
    - {name: masks, type: builtin, handler: masks, pool: go, readonly: false}
    - {name: last, type: builtin, handler: inject_text, options: {text: two, strategy: user_message}}
`)
		f.serve("w", handlers{"masks": does(schema.Result{UpdatedOutput: jsontext.Value(`"***"`)})})
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.want(`Bash ran with {"command":"ls"}`, `result "***" + one`, "user two", "feedback that was wrong")
		a.wantTrail(1, "first:ok denies:ok masks:ok last:ok")
	}},
	{"an unknown decision is an error, not an allow", func(t *testing.T) {
		f := start(t, `
hooks:
  PreToolUse:
    - {name: guard, type: builtin, handler: odd, pool: go, matcher: Bash, fail_closed: true}
    - {name: odd, type: builtin, handler: odd, pool: go, matcher: Edit}
`)
		f.serve("w", handlers{"odd": does(schema.Result{Decision: "DENY"})})
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.call("Edit", `{}`)
		a.want(`error hook "guard" is fail-closed and gave no answer: decided "DENY"; at PreToolUse write one of continue, allow, ask, deny, fail, stop`,
			"Edit ran with {}", `result "done"`)
		a.wantErrors(1, 1, `decided "DENY"`)
		if d := a.verdicts[1].Decision; d != schema.Continue {
			t.Errorf("it is %s", d)
		}
	}},
}

var whatHooksInject = []scenario{
	{"inject as tool_result", func(t *testing.T) {
		f := start(t, `{hooks: {PostToolUse: [{type: builtin, handler: tells, pool: go}]}}`)
		f.serve("w", handlers{"tells": does(schema.Injected("mind the gap", schema.ToolResult))})
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.want(`Bash ran with {"command":"ls"}`, `result "done" + mind the gap`)
	}},
	{"inject as user_message", func(t *testing.T) {
		f := start(t, `{hooks: {PostToolUse: [{type: builtin, handler: tells, pool: go}]}}`)
		f.serve("w", handlers{"tells": does(schema.Injected("mind the gap", schema.UserMessage))})
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.want(`Bash ran with {"command":"ls"}`, `result "done"`, "user mind the gap")
	}},
	{"injections combine, each with its own strategy", func(t *testing.T) {
		f := start(t, `
hooks:
  PreToolUse:  [{type: builtin, handler: inject_text, options: {text: before}}]
  PostToolUse:
    - {type: builtin, handler: inject_text, options: {text: one, strategy: user_message}}
    - {type: builtin, handler: two, pool: go}
    - {type: builtin, handler: inject_text, options: {text: four}}
`)
		f.serve("w", handlers{"two": does(schema.Result{Injections: []schema.Injection{{Content: "two"}, {Content: "three", Strategy: schema.UserMessage}}})})
		a := f.agent("agent1")
		a.call("Bash", bash)
		a.want(`Bash ran with {"command":"ls"}`, `result "done" + before + two + four`, "user one", "user three")
	}},
}
