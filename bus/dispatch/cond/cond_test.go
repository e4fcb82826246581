package cond_test

import (
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/dispatch/cond"
	"github.com/hookfabric/hookfabric/schema"
)

func TestAConditionSeesTheEvent(t *testing.T) {
	c, err := cond.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	e := &schema.Event{
		HookType: schema.PreToolUse, ToolName: "Bash", AgentID: "a1",
		ToolInput: []byte(`{"command":"rm -rf /","lines":120,"nested":{"deep":[1,2.5]}}`),
		Labels:    map[string]string{"team": "red"},
	}
	for expr, want := range map[string]bool{
		`tool_input.command.contains("rm ")`:                 true,
		`tool_input.lines > 100`:                             true,
		`tool_input.nested.deep[1] == 2.5`:                   true,
		`tool_name == "Write"`:                               false,
		`labels.team == "red" && agent_id.startsWith("a")`:   true,
		`has(tool_input.missing) && tool_input.missing == 1`: false,
		`tool_output == null`:                                true,
	} {
		cnd, err := c.Compile(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if got, err := cnd.Holds(e); err != nil || got != want {
			t.Errorf("%s = %v, %v; want %v", expr, got, err, want)
		}
	}
}

func TestAFaultyConditionIsRefusedWhenItIsRead(t *testing.T) {
	c, err := cond.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	for expr, want := range map[string]string{
		`tool_nmae == "x"`:    "undeclared reference",
		`tool_input.command(`: "Syntax error",
		`iteration`:           "not true or false",
		`iteration == "one"`:  "no matching overload",
	} {
		if _, err := c.Compile(expr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", expr, err, want)
		}
	}
}

func TestAConditionThatCanNotBeEvaluatedIsAnError(t *testing.T) {
	c, err := cond.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	for _, expr := range []string{`tool_input.absent == 1`, `tool_input.command`, `tool_input.n / 0 == 1`} {
		cnd, err := c.Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		e := &schema.Event{ToolInput: []byte(`{"command":"x","n":1}`)}
		if _, err := cnd.Holds(e); err == nil {
			t.Errorf("%s: no error", expr)
		}
	}
}
