package cond_test

import (
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/dispatch/cond"
	"github.com/hookfabric/hookfabric/schema"
)

func compiler(t testing.TB) *cond.Compiler {
	t.Helper()
	c, err := cond.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func compile(t testing.TB, expr string) dispatch.Condition {
	t.Helper()
	c, err := compiler(t).Compile(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return c
}

var routing = schema.Routing{
	Event: schema.PreToolUse, Agent: "a1", Session: "s1", Tool: "Bash", ID: "0199f3c1-6d1f-7e8a-9b2c-3d4e5f607182",
}

// view returns an event of the agent a1 about Bash with this body.
func view(body string) *dispatch.View { return dispatch.NewView(routing, []byte(body)) }

const whole = `{
	"hook_type": "claimed", "agent_id": "claimed", "session_id": "claimed", "event_id": "claimed",
	"orchestrator_id": "o1", "runtime": "claude", "timestamp": "2026-01-02T15:04:05Z", "tool_name": "Bash", "tool_kind": "shell",
	"tool_args": {"command": "rm -rf /", "paths": ["/etc/passwd"]},
	"tool_input": {"command": "rm -rf /", "lines": 120, "big": 9007199254740993, "whole": 3.0, "half": 2.5, "null": null,
		"yes": true, "paths": ["/etc/passwd", "/tmp/x"], "nested": {"deep": [1, 2.5]}},
	"tool_output": {"stdout": ["a", "b"]}, "tool_use_id": "t1", "error": "broke", "message": "hello", "prompt": "do it",
	"response": 7, "iteration": 3, "cwd": "/home/a", "labels": {"team": "red"}
}`

func TestAConditionReadsEveryFieldOfTheEvent(t *testing.T) {
	for _, expr := range []string{
		`hook_type == "PreToolUse"`, `agent_id == "a1"`, `session_id == "s1"`, `event_id.startsWith("0199")`, `tool_name == "Bash"`,
		`orchestrator_id == "o1"`, `runtime == "claude"`, `tool_kind == "shell"`, `tool_use_id == "t1"`, `error == "broke"`,
		`prompt == "do it"`, `cwd == "/home/a"`, `iteration == 3`, `labels.team == "red"`, `"team" in labels`,
		`timestamp == timestamp("2026-01-02T15:04:05Z")`, `timestamp.getFullYear() == 2026`,
		`message == "hello"`, `response == 7`, `tool_output.stdout == ["a", "b"]`,
	} {
		holds(t, expr, whole, true)
	}
}

func TestAConditionReadsToolInput(t *testing.T) {
	for expr, want := range map[string]bool{
		`tool_input.command.contains("rm ")`:                                       true,
		`tool_kind == "shell" && tool_args.command.contains("rm")`:                 true,
		`tool_args.paths.exists(p, p.startsWith("/etc/"))`:                         true,
		`tool_input.lines > 100`:                                                   true,
		`tool_input.lines > 100.5`:                                                 true,
		`tool_input.lines > 120`:                                                   false,
		`tool_input.big == 9007199254740993`:                                       true,
		`tool_input.whole + 1 == 4`:                                                true,
		`tool_input.half == 2.5`:                                                   true,
		`tool_input["null"] == null`:                                               true,
		`tool_input.yes`:                                                           true,
		`tool_input.nested.deep[1] == 2.5`:                                         true,
		`tool_input["command"].size() == 8`:                                        true,
		`has(tool_input.missing) && tool_input.missing == 1`:                       false,
		`tool_input.?missing.orValue("").contains("rm")`:                           false,
		`tool_input.?nested.?deep[?0].orValue(0) == 1`:                             true,
		`tool_input.?nested.?none.?deeper.hasValue()`:                              false,
		`tool_input.paths.exists(p, p.startsWith("/etc/"))`:                        true,
		`tool_input.paths.all(p, p.startsWith("/etc/"))`:                           false,
		`tool_input.paths.filter(p, p.matches("^/tmp")).size() == 1`:               true,
		`tool_input.exists(name, name == "lines")`:                                 true,
		`sets.intersects(tool_input.paths, ["/etc/shadow", "/etc/passwd"])`:        true,
		`sets.contains(["/tmp/x"], tool_input.paths)`:                              false,
		`tool_input.paths.slice(0, 1) == ["/etc/passwd"]`:                          true,
		`tool_input.command.lowerAscii().split(" ")[0] in ["rm", "dd"]`:            true,
		`tool_input.command.replace("rm", "ls").trim().upperAscii() == "LS -RF /"`: true,
		`tool_input.command.indexOf("-rf") == 3`:                                   true,
		`tool_input.paths.join(",") == "/etc/passwd,/tmp/x"`:                       true,
		`tool_input.command.matches("(?i)^RM\\s+-[a-z]*r")`:                        true,
		`matches(tool_input.command, "^ls")`:                                       false,
	} {
		holds(t, expr, whole, want)
	}
}

func TestMissingFieldsAreEmpty(t *testing.T) {
	for _, expr := range []string{
		`runtime == "" && orchestrator_id == "" && tool_kind == "" && tool_use_id == "" && error == "" && prompt == "" && cwd == ""`,
		`iteration == 0`, `labels == {}`, `tool_args == {}`, `tool_input == {}`, `tool_output == null`, `message == null`, `response == null`,
		`timestamp < timestamp("0001-01-02T00:00:00Z")`, `!("team" in labels)`, `labels.?team.orValue("none") == "none"`,
	} {
		holds(t, expr, `{}`, true)
	}
}

func holds(t *testing.T, expr, body string, want bool) {
	t.Helper()
	if got, err := compile(t, expr).Holds(view(body)); err != nil || got != want {
		t.Errorf("%s = %v, %v; want %v", expr, got, err, want)
	}
}

func TestAConditionThatCannotBeEvaluatedIsAnError(t *testing.T) {
	huge := strings.Repeat("1,", 1<<14)
	for expr, want := range map[string]string{
		`tool_input.absent == 1`:                 `the event has no absent; check it first with has(…), or write .?absent.orValue("")`,
		`tool_input.nested.absent == 1`:          "the event has no absent",
		`tool_input.command`:                     "evaluated to a string, not to true or false",
		`tool_input.lines / 0 == 1`:              "division by zero",
		`tool_input.lines.contains("1")`:         "no such overload",
		`tool_output.x == 1`:                     "the event has no x",
		`labels.absent == ""`:                    "the event has no absent",
		`response == 1 || tool_input.absent`:     "the event has no absent",
		`tool_input.huge.exists(x, x == 2)`:      "too many for a condition",
		`tool_input.?paths.orValue([])[9] == ""`: "index out of bounds",
	} {
		body := `{"tool_input": {"command": "x", "lines": 1, "nested": {}}}`
		if strings.Contains(expr, "huge") {
			body = `{"tool_input": {"huge": [` + huge + `1]}}`
		}
		if _, err := compile(t, expr).Holds(view(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", expr, err, want)
		}
	}
}

func TestAnIrrelevantErrorDoesNotCount(t *testing.T) {
	holds(t, `tool_name == "Bash" || tool_input.absent == 1`, `{}`, true)
	holds(t, `tool_input.absent == 1 || tool_name == "Bash"`, `{}`, true)
	holds(t, `tool_name == "Edit" && tool_input.absent == 1`, `{}`, false)
}

func TestOnlyMentionedFieldsAreDecoded(t *testing.T) {
	broken := `{"tool_input": [`
	holds(t, `tool_name == "Bash" && agent_id.startsWith("a")`, broken, true)
	v := view(broken)
	if _, err := compile(t, `cwd == ""`).Holds(v); err == nil || !strings.Contains(err.Error(), "tool_input") {
		t.Errorf("a broken body: %v", err)
	}
}

// TestToolInputIsDecodedOnceForAllConditions protects the time of a call with many conditions: an input may have
// megabytes, and the next condition reuses what one has decoded.
func TestToolInputIsDecodedOnceForAllConditions(t *testing.T) {
	v := view(whole)
	conditions := []dispatch.Condition{
		compile(t, `tool_input.command.contains("rm ")`), compile(t, `tool_input.lines == 120`), compile(t, `tool_input.exists(k, k == "yes")`),
	}
	first := testing.AllocsPerRun(100, func() { ask(t, conditions[0], view(whole)) })
	later := testing.AllocsPerRun(100, func() {
		for _, c := range conditions {
			ask(t, c, v)
		}
	})
	if later >= first {
		t.Errorf("three conditions on an event that was read make %v allocations, one on a new one %v", later, first)
	}
}

func ask(t testing.TB, c dispatch.Condition, v *dispatch.View) {
	if ok, err := c.Holds(v); err != nil || !ok {
		t.Fatal(ok, err)
	}
}
