package cond_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hookfabric/hookfabric/schema"
)

// Any text is compiled, or rejected with faults that are one line each, at a place in the
// text.
func FuzzCompile(f *testing.F) {
	for _, m := range mistakes {
		f.Add(m.expr)
	}
	for _, c := range expensive() {
		f.Add(c.expr)
	}
	c := compiler(f)
	f.Fuzz(func(t *testing.T, expr string) {
		_, err := c.Compile(expr)
		if err == nil {
			return
		}
		faults, ok := errors.AsType[schema.ConditionFaults](err)
		if !ok || len(faults) == 0 {
			t.Fatalf("%T: %v", err, err)
		}
		lines := strings.Split(expr, "\n")
		for _, fault := range faults {
			s := fault.Error()
			if strings.ContainsAny(s, "\n\r") || fault.Message == "" || len(s) > 1000 || !utf8.ValidString(s) {
				t.Errorf("%q", s)
			}
			if fault.Line < 1 || fault.Line > len(lines) || fault.Column < 1 || fault.Column > utf8.RuneCountInString(lines[fault.Line-1])+1 {
				t.Errorf("%d:%d is not in %q", fault.Line, fault.Column, expr)
			}
		}
	})
}

// A condition about any event has a value or is an error.
func FuzzHolds(f *testing.F) {
	f.Add(`tool_input.command.contains("rm ")`, whole)
	f.Add(`tool_input.exists(k, k == "x") || message == null`, `{}`)
	f.Add(`labels.team == "red" && timestamp.getHours() > 3`, `{"labels": {"team": "red"}, "timestamp": "2026-01-02T15:04:05Z"}`)
	f.Add(`tool_output.x[3].y in tool_input.list`, `{"tool_output": {"x": [1e999, -0, 18446744073709551615]}, "tool_input": {"a": "\ud800"}}`)
	for _, c := range expensive() {
		f.Add(c.expr, `{"tool_input": {"list": [1, "a", {}, []], "long": "aaaa", "some": "a", "part": ""}}`)
	}
	c := compiler(f)
	f.Fuzz(func(t *testing.T, expr, body string) {
		cnd, err := c.Compile(expr)
		if err != nil {
			return
		}
		first, err := cnd.Holds(view(body))
		if again, errAgain := cnd.Holds(view(body)); first != again || (err == nil) != (errAgain == nil) {
			t.Errorf("%v, %v, and then %v, %v", first, err, again, errAgain)
		}
		if err != nil && (err.Error() == "" || strings.Contains(err.Error(), "internal error")) {
			t.Error(err)
		}
	})
}
