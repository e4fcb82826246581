package e2e_test

import (
	"context"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// A spoilt is a faulty answer of a hook.
type spoilt struct {
	name, want string
	// stdout is what the program prints; script is run instead, if there is one.
	stdout, script string
	// kept means that the broker reports the fault and uses the rest of the answer.
	kept bool
}

// junkResult runs a program that gives a spoilt answer, for a hook that fails open and for one that
// is fail-closed.
func junkResult(s spoilt) junk {
	return junk{s.name, s.want, func(t testing.TB, f *junkFabric) string {
		name := strings.ReplaceAll(s.name, " ", "_")
		write(t, f.dir, "answers/"+name, s.stdout)
		if s.script != "" {
			write(t, f.dir, "answers/"+name+".sh", s.script)
		}
		open, closed := f.judged(t, "open-"+name), f.judged(t, "closed-"+name)
		if s.kept {
			return strings.Join(open.HookErrors, "; ")
		}
		if open.Decision != schema.Continue || open.ExecutedHooks[0].Outcome == schema.OK {
			t.Errorf("%s: fail-open decided %q with the outcome %s", s.name, open.Decision, open.ExecutedHooks[0].Outcome)
		}
		if closed.Decision != schema.Deny || closed.ExecutedHooks[0].Outcome == schema.OK {
			t.Errorf("%s: fail-closed decided %q with the outcome %s", s.name, closed.Decision, closed.ExecutedHooks[0].Outcome)
		}
		return strings.Join(open.HookErrors, "; ")
	}}
}

func (f *junkFabric) judged(t testing.TB, tool string) *schema.Verdict {
	t.Helper()
	v, err := ask(context.WithoutCancel(t.Context()), f.client, tool)
	if err != nil || len(v.ExecutedHooks) != 1 {
		t.Fatalf("the call of %s got %+v, %v", tool, v, err)
	}
	return v
}

func junkResults() []junk {
	var all []junk
	for _, s := range []spoilt{
		{name: "prose", want: "a hook answers with one JSON object", stdout: "all fine\n"},
		{name: "a list", want: "a hook answers with one JSON object", stdout: `[{"decision":"allow"}]`},
		{name: "a string", want: "a hook answers with one JSON object", stdout: `"allow"`},
		{name: "a number", want: "a hook answers with one JSON object", stdout: `1`},
		{name: "true", want: "a hook answers with one JSON object", stdout: `true`},
		{name: "null", want: "a hook answers with one JSON object", stdout: `null`},
		{name: "half an object", want: "the answer", stdout: `{"decision":"allow"`},
		{name: "a trailing comma", want: "the answer", stdout: `{"decision":"allow",}`},
		{name: "two objects", want: "the answer", stdout: `{"decision":"allow"}{"decision":"allow"}`},
		{name: "a name twice", want: "the answer", stdout: `{"decision":"deny","decision":"allow"}`},
		{name: "single quotes", want: "the answer", stdout: `{'decision':'allow'}`},
		{name: "a comment", want: "the answer", stdout: `{"decision":"allow"} // fine`},
		{name: "prose before", want: "a hook answers with one JSON object", stdout: `ok: {"decision":"allow"}`},
		{name: "a byte order mark", want: "the answer", stdout: "\ufeff{\"decision\":\"allow\"}"},
		{name: "binary", want: "the answer", stdout: "\x7fELF\x00\x01"},
		{name: "a bare escape", want: "the answer", stdout: `{"decision":"\x61llow"}`},
		{name: "deep nesting", want: "nests deeper than", stdout: strings.Repeat(`{"value":`, 2000) + "1" + strings.Repeat("}", 2000)},
		{name: "an unknown decision", want: `decided "maybe"`, stdout: `{"decision":"maybe"}`},
		{name: "a decision in capitals", want: `decided "ALLOWED"`, stdout: `{"decision":"ALLOWED"}`},
		{name: "an empty decision", want: "decided", stdout: `{"decision":""}`},
		{name: "a number for a decision", want: "decided", stdout: `{"decision":1}`},
		{name: "a list for a decision", want: "decided", stdout: `{"decision":["allow"]}`},
		{name: "a boolean for a decision", want: "decided", stdout: `{"decision":true}`},
		{name: "a decision of another moment", want: `decided "retry"`, stdout: `{"decision":"retry"}`},
		{name: "a stop without its value", want: "stop without its value", stdout: `{"decision":"stop"}`},
		{name: "a reason that is no text", want: "reason is", stdout: `{"decision":"allow","reason":7}`, kept: true},
		{name: "input that is no object", want: "updated_input dropped", stdout: `{"updated_input":[1]}`, kept: true},
		{name: "input as text", want: "updated_input dropped", stdout: `{"updated_input":"ls"}`, kept: true},
		{name: "output before the tool", want: "updated_output dropped", stdout: `{"updated_output":"x"}`, kept: true},
		{name: "effects that are no list", want: "effects is", stdout: `{"effects":{}}`, kept: true},
		{name: "an injection that is text", want: "inject is", stdout: `{"inject":"hello"}`, kept: true},
		{name: "injections that are no list", want: "injections is", stdout: `{"injections":{"content":"x"}}`, kept: true},
		{name: "an unknown strategy", want: "strategy", stdout: `{"inject":{"content":"x","strategy":"shout"}}`, kept: true},
		{name: "modified args that are no JSON", want: "modified_args", stdout: `{"modified_args":"{"}`, kept: true},
		{name: "an output for another moment", want: "hookEventName", stdout: `{"hookSpecificOutput":{"hookEventName":"PostToolUse"}}`, kept: true},
		{name: "an output that is no object", want: "hookSpecificOutput is", stdout: `{"hookSpecificOutput":[]}`, kept: true},
		{name: "more than an answer holds", want: "the limit of an answer", script: `head -c 3000000 /dev/zero | tr '\0' x`},
		{name: "a reason of more than it holds", want: "the limit of an answer", script: `printf '{"decision":"allow","reason":"'; head -c 1100000 /dev/zero | tr '\0' x; printf '"}'`},
		{name: "exit code 1", want: "exited with code 1: broken", script: "echo broken >&2; exit 1"},
		{name: "exit code 3 and an allow", want: "exited with code 3", script: `echo '{"decision":"allow"}'; exit 3`},
		{name: "exit code 127", want: "exited with code 127", script: "exit 127"},
		{name: "a signal", want: "ended by a signal", script: "kill -9 $$"},
		{name: "no answer in time", want: "did not answer within its timeout of 2s", script: "sleep 60"},
		{name: "its output held open", want: "kept its standard output open", script: "sleep 60 & exit 0"},
	} {
		all = append(all, junkResult(s))
	}
	return all
}
