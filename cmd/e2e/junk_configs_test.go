package e2e_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	shim "github.com/hookfabric/hookfabric/cmd/agentshim/app"
	broker "github.com/hookfabric/hookfabric/cmd/broker/app"
)

// junkConfigs are configurations that `broker check` refuses, each with the
// file's name and a place. The reader's own examples say what in detail.
func junkConfigs(t testing.TB) []junk {
	t.Helper()
	files, err := filepath.Glob("../../schema/hooksyaml/testdata/faulty/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no faulty configurations: %v", err)
	}
	var all []junk
	for _, path := range files {
		all = append(all, junk{"config " + filepath.Base(path), filepath.Base(path) + ":", func(t testing.TB, _ *junkFabric) string {
			return check(t, path)
		}})
	}
	for name, c := range map[string]struct{ want, text string }{
		"a condition that is no CEL":      {"when", "hooks:\n  PreToolUse:\n    - {type: builtin, handler: log, when: 'a ==='}\n"},
		"a condition of unknown names":    {"when", "hooks:\n  PreToolUse:\n    - {type: builtin, handler: log, when: 'agent.mood == \"bad\"'}\n"},
		"a condition that is no question": {"when", "hooks:\n  PreToolUse:\n    - {type: builtin, handler: log, when: '1 + 1'}\n"},
	} {
		all = append(all, junk{name, c.want, func(t testing.TB, f *junkFabric) string {
			return check(t, write(t, f.dir, "junk.yaml", c.text))
		}})
	}
	return all
}

// check runs `broker check` in this process and returns what it says is wrong.
func check(t testing.TB, path string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := broker.Main(context.WithoutCancel(t.Context()), []string{"check", path}, strings.NewReader(""), &stdout, &stderr)
	if code != 1 || stdout.Len() > 0 {
		t.Errorf("broker check %s ended with %d and said %q", path, code, &stdout)
	}
	return stderr.String()
}

// junkPayloads are what agents' runtimes should not write.
func junkPayloads() []junk {
	var all []junk
	for _, c := range []struct{ name, want, stdin string }{
		{"nothing", "the event is not valid JSON", ""},
		{"prose", "the event is not valid JSON", "hello"},
		{"null", "the event is null", "null"},
		{"a list", "the event is a list", "[]"},
		{"half an object", "the event is not valid JSON", `{"hook_type":"PreToolUse"`},
		{"two objects", "the event is not valid JSON", `{"hook_type":"PreToolUse"}{}`},
		{"no event's name", "has no hook_type", `{"tool_name":"Bash"}`},
		{"an unknown event", "unknown event", `{"hook_type":"BeforeLunch"}`},
		{"a number for the tool", "it must be a string", `{"hook_type":"PreToolUse","tool_name":1}`},
		{"an invalid time", "it must be a time such as", `{"hook_type":"PreToolUse","timestamp":"noon"}`},
		{"a name twice", "the event is not valid JSON", `{"hook_type":"PreToolUse","hook_type":"PostToolUse"}`},
		{"deep nesting", "the event is not valid JSON", `{"hook_type":"PreToolUse","tool_input":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}"},
	} {
		all = append(all, junk{"payload: " + c.name, c.want, func(t testing.TB, f *junkFabric) string {
			var stdout, stderr bytes.Buffer
			code := shim.Main(context.WithoutCancel(t.Context()), []string{"hook", "--runtime", "generic", "--nats", f.broker.url},
				strings.NewReader(c.stdin), &stdout, &stderr)
			if code != 1 || !strings.HasPrefix(stdout.String(), `{"decision":"deny","reason":"a fail-closed hook guards this call`) {
				t.Errorf("payload %s: ended with %d and said %q", c.name, code, &stdout)
			}
			return stderr.String()
		}})
	}
	return all
}
