package schema_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hookfabric/hookfabric/schema"
)

type answerCase struct {
	name   string
	event  schema.EventType
	answer string
	want   schema.Result
	// faults are texts of the hook errors, in order.
	faults []string
}

func raw(s string) jsontext.Value { return jsontext.Value(s) }

func decided(d schema.Decision, reason string) schema.Result {
	return schema.Result{Decision: d, Reason: reason}
}

var goodAnswers = []answerCase{
	{name: "no opinion is an empty object", event: schema.PreToolUse, answer: ` {} `},
	{name: "a null decision is no opinion", event: schema.PreToolUse, answer: `{"decision":null}`},
	{name: "every canonical member is read", event: schema.PreToolUse, answer: `{"decision":"ask","reason":"why","updated_input":{"a":1},
		"effects":[{"set":1}],"inject":{"content":"one","strategy":"user_message"},"injections":[{"content":"two"}],"hook_errors":["oops"]}`,
		want: schema.Result{
			Decision: schema.Ask, Reason: "why", UpdatedInput: raw(`{"a":1}`), Effects: []jsontext.Value{raw(`{"set":1}`)},
			Injections: []schema.Injection{{Content: "one", Strategy: schema.UserMessage}, {Content: "two"}}, HookErrors: []string{"oops"},
		}},
	{name: "an output is rewritten", event: schema.PostToolUse, answer: `{"updated_output":[1]}`, want: schema.Result{UpdatedOutput: raw(`[1]`)}},
	{name: "a stop has its value", event: schema.BeforeLLMCall, answer: `{"decision":"stop","value":"enough"}`, want: schema.Result{Decision: schema.Stop, Value: raw(`"enough"`)}},
	{name: "an empty object is a rewrite", event: schema.PreToolUse, answer: `{"updated_input":{}}`, want: schema.Result{UpdatedInput: raw(`{}`)}},
	{name: "null is not a rewrite", event: schema.PreToolUse, answer: `{"updated_input":null,"updated_output":null,"value":null,"effects":null,"inject":null,"injections":null,"hook_errors":null}`},
	{name: "an unknown strategy is kept for the fold to judge", event: schema.PostToolUse, answer: `{"inject":{"content":"x","strategy":"sidebar"}}`,
		want: schema.Result{Injections: []schema.Injection{{Content: "x", Strategy: "sidebar"}}}},
	{name: "an injection without content is dropped", event: schema.PostToolUse, answer: `{"inject":{"content":"","strategy":"tool_result"},"injections":[{},null]}`},
	{name: "unknown members are ignored", event: schema.PreToolUse, answer: `{"Decision":"deny","verdict":[1],"decision":"continue"}`, want: decided(schema.Continue, "")},
	{name: "unknown members are ignored beside an allow with its reason", event: schema.PostToolUse, answer: `{"decision":"allow","reason":"r","rule":7}`, want: decided(schema.None, "r")},
	{name: "unknown members are ignored beside a rewrite", event: schema.PreToolUse, answer: `{"updated_input":{},"reason":"r","rule":7}`, want: schema.Result{UpdatedInput: raw(`{}`), Reason: "r"}},
	{name: "a reason alone is no opinion", event: schema.PreToolUse, answer: `{"reason":"looked at it"}`, want: decided(schema.None, "looked at it")},
	{name: "members that only explain are no opinion", event: schema.PreToolUse, answer: `{"metadata":{"reason":"m"},"stopReason":"s","systemMessage":"y","suppressOutput":true}`, want: decided(schema.None, "m")},
	{name: "unknown members are ignored beside Claude Code's decision", event: schema.PreToolUse, answer: `{"hookSpecificOutput":{"permissionDecision":"ask"},"rule":7}`, want: decided(schema.Ask, "")},
	{name: "a permissionDecisionReason alone is no opinion", event: schema.PreToolUse, answer: `{"hookSpecificOutput":{"permissionDecisionReason":"p"}}`, want: decided(schema.None, "p")},

	{name: "allow is allow where it is listed", event: schema.PreToolUse, answer: `{"decision":"allow"}`, want: decided(schema.Allow, "")},
	{name: "allow is no opinion elsewhere", event: schema.PostToolUse, answer: `{"decision":"allow"}`},
	{name: "approve is allow", event: schema.PreToolUse, answer: `{"decision":"approve"}`, want: decided(schema.Allow, "")},
	{name: "approve is no opinion where allow is not listed", event: schema.BeforeFinalResponse, answer: `{"decision":"approve"}`},
	{name: "block is deny", event: schema.PreToolUse, answer: `{"decision":"block","reason":"no"}`, want: decided(schema.Deny, "no")},
	{name: "block is feedback after a tool", event: schema.PostToolUse, answer: `{"decision":"block","reason":"no"}`, want: decided(schema.Deny, "no")},
	{name: "block is a retry at the end", event: schema.BeforeFinalResponse, answer: `{"decision":"block","reason":"tests fail"}`, want: decided(schema.Retry, "tests fail")},

	{name: "reject is fail before the model is called", event: schema.BeforeLLMCall, answer: `{"decision":"reject","reason":"no"}`, want: decided(schema.Fail, "no")},
	{name: "reject is fail before a tool", event: schema.PreToolUse, answer: `{"decision":"reject","reason":"no"}`, want: decided(schema.Fail, "no")},
	{name: "reject is fail after a tool", event: schema.PostToolUse, answer: `{"decision":"reject","metadata":{"reason":"m"}}`, want: decided(schema.Fail, "m")},
	{name: "reject is fail when a query ends", event: schema.QueryEnd, answer: `{"decision":"reject","reason":"no"}`, want: decided(schema.Fail, "no")},
	{name: "reject is a fail before a deny", event: schema.PreToolUse, answer: `{"decision":"reject","allowed":false}`, want: decided(schema.Fail, "")},
	{name: "reject where nothing can fail stays an unknown word", event: schema.UserPromptSubmit, answer: `{"decision":"reject"}`, want: decided("reject", "")},

	{name: "allowed false is deny", event: schema.PreToolUse, answer: `{"allowed":false,"metadata":{"reason":"m"}}`, want: decided(schema.Deny, "m")},
	{name: "allowed null is deny", event: schema.PreToolUse, answer: `{"allowed":null}`, want: decided(schema.Deny, "")},
	{name: "allowed true is allow", event: schema.PreToolUse, answer: `{"allowed":true}`, want: decided(schema.Allow, "")},
	{name: "allowed true does not undo a deny", event: schema.PreToolUse, answer: `{"allowed":true,"decision":"deny"}`, want: decided(schema.Deny, "")},
	{name: "allowed false overrules ask", event: schema.PreToolUse, answer: `{"allowed":false,"decision":"ask"}`, want: decided(schema.Deny, "")},
	{name: "a reason beats the metadata's", event: schema.PreToolUse, answer: `{"decision":"deny","reason":"r","metadata":{"reason":"m"}}`, want: decided(schema.Deny, "r")},
	{name: "modified_args beat updated_input", event: schema.PreToolUse, answer: `{"updated_input":{"a":1},"modified_args":"{\"a\":2}"}`, want: schema.Result{UpdatedInput: raw(`{"a":2}`)}},
	{name: "modified_args may hold a lone surrogate", event: schema.PreToolUse, answer: `{"modified_args":"{\"a\":\"\\ud800\"}"}`, want: schema.Result{UpdatedInput: raw(`{"a":"\ud800"}`)}},

	{name: "Claude Code denies", event: schema.PreToolUse, answer: `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`, want: decided(schema.Deny, "no")},
	{name: "Claude Code asks", event: schema.PreToolUse, answer: `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask"}}`, want: decided(schema.Ask, "")},
	{name: "Claude Code rewrites", event: schema.PreToolUse, answer: `{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"a":1}}}`, want: schema.Result{Decision: schema.Allow, UpdatedInput: raw(`{"a":1}`)}},
	{name: "Claude Code adds context", event: schema.PostToolUse, answer: `{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"lint"}}`,
		want: schema.Result{Injections: []schema.Injection{{Content: "lint", Strategy: schema.ToolResult}}}},
	{name: "Claude Code replaces an output", event: schema.PostToolUse, answer: `{"hookSpecificOutput":{"updatedToolOutput":{"stdout":""}}}`, want: schema.Result{UpdatedOutput: raw(`{"stdout":""}`)}},
	{name: "Claude Code replaces an MCP output", event: schema.PostToolUse, answer: `{"hookSpecificOutput":{"updatedMCPToolOutput":"x"}}`, want: schema.Result{UpdatedOutput: raw(`"x"`)}},
	{name: "MassGen's adapter replaces an output", event: schema.PostToolUse, answer: `{"hookSpecificOutput":{"modifiedOutput":"x"}}`, want: schema.Result{UpdatedOutput: raw(`"x"`)}},
	{name: "Claude Code's text for the user is not an error", event: schema.PostToolUse, answer: `{"systemMessage":"hi","decision":"block","reason":"no"}`,
		want: schema.Result{Decision: schema.Deny, Reason: "no"}},
	{name: "its other members of one event are reported as dropped", event: schema.PreToolUse, answer: `{"hookSpecificOutput":{"permissionDecision":"deny","watchPaths":["a"],"sessionTitle":"t"}}`,
		want: schema.Result{Decision: schema.Deny, HookErrors: []string{"hookSpecificOutput.sessionTitle dropped: it has no meaning here", "hookSpecificOutput.watchPaths dropped: it has no meaning here"}}},
	{name: "Claude Code calls a failed tool by another name", event: schema.ToolError, answer: `{"hookSpecificOutput":{"hookEventName":"PostToolUseFailure"}}`},
	{name: "Claude Code calls the end Stop", event: schema.BeforeFinalResponse, answer: `{"hookSpecificOutput":{"hookEventName":"SubagentStop"}}`},
	{name: "continue true is no opinion", event: schema.PreToolUse, answer: `{"continue":true,"stopReason":"x","suppressOutput":true}`},
	{name: "Claude Code's texts for a person are no opinion", event: schema.PreToolUse, answer: `{"suppressOutput":true,"systemMessage":"hi"}`},
	{name: "a systemMessage alone is no opinion", event: schema.PreToolUse, answer: `{"systemMessage":"hi"}`},
	{name: "Claude Code names the event and nothing else", event: schema.PreToolUse, answer: `{"hookSpecificOutput":{"hookEventName":"PreToolUse"}}`},
	{name: "an unknown member beside one of Claude Code's is noted", event: schema.SessionStart, answer: `{"hookSpecificOutput":{"additionalContext":"c","watchPaths":[]}}`,
		want: schema.Result{Injections: []schema.Injection{{Content: "c", Strategy: schema.ToolResult}},
			HookErrors: []string{"hookSpecificOutput.watchPaths dropped: it has no meaning here"}}},
	{name: "continue false ends the run", event: schema.PreToolUse, answer: `{"continue":false,"stopReason":"over"}`, want: decided(schema.Fail, "over")},
	{name: "continue false refuses a prompt", event: schema.UserPromptSubmit, answer: `{"continue":false}`, want: decided(schema.Deny, "")},
	{name: "continue false at the end cancels a retry", event: schema.BeforeFinalResponse, answer: `{"decision":"block","continue":false}`},
	{name: "continue false at the end leaves a fail", event: schema.BeforeFinalResponse, answer: `{"decision":"fail","continue":false}`, want: decided(schema.Fail, "")},

	{name: "the stricter of two decisions counts", event: schema.PreToolUse, answer: `{"decision":"approve","hookSpecificOutput":{"permissionDecision":"ask"}}`, want: decided(schema.Ask, "")},
	{name: "a decision to continue does not hide another", event: schema.PreToolUse, answer: `{"decision":"continue","hookSpecificOutput":{"permissionDecision":"deny"}}`, want: decided(schema.Deny, "")},
	{name: "garbage beside a deny does not undo it", event: schema.PreToolUse, answer: `{"decision":"deny","allowed":"yes"}`, want: decided(schema.Deny, "")},
	{name: "a surrogate alone is replaced", event: schema.PreToolUse, answer: `{"decision":"deny","reason":"\ud800"}`, want: decided(schema.Deny, "\uFFFD")},
	{name: "invalid UTF-8 is replaced", event: schema.PreToolUse, answer: "{\"decision\":\"deny\",\"reason\":\"a\xffb\"}", want: decided(schema.Deny, "a\uFFFDb")},
}

// Unknown decisions stay as they are, for the fold to refuse.
var unknownDecisions = []answerCase{
	{name: "a word in capitals", answer: `{"decision":"DENY"}`, want: decided("DENY", "")},
	{name: "an empty word", answer: `{"decision":""}`, want: decided(`""`, "")},
	{name: "a blank around a word", answer: `{"decision":"allow "}`, want: decided("allow ", "")},
	{name: "a number", answer: `{"decision":1}`, want: decided("1", "")},
	{name: "a boolean", answer: `{"decision":true}`, want: decided("true", "")},
	{name: "an object", answer: `{"decision":{"behavior":"allow"}}`, want: decided(`{"behavior":"allow"}`, "")},
	{name: "an unknown permissionDecision", answer: `{"hookSpecificOutput":{"permissionDecision":"defer"}}`, want: decided("defer", "")},
	{name: "a misspelt permissionDecision", answer: `{"hookSpecificOutput":{"hookEventName":null,"permissionDesicion":"deny"}}`, want: decided(`hookSpecificOutput: {"permissionDesicion":"deny"}`, "")},
	{name: "a misspelt permissionDecision with its reason", answer: `{"hookSpecificOutput":{"permissionDesicion":"deny","permissionDecisionReason":"no"}}`, want: decided(`hookSpecificOutput: {"permissionDesicion":"deny"}`, "no")},
	{name: "a member of PermissionRequest beside a yes", answer: `{"decision":"allow","hookSpecificOutput":{"decision":{"behavior":"deny"}}}`, want: decided(`hookSpecificOutput: {"decision":{"behavior":"deny"}}`, "")},
	{name: "Claude Code's part as a word", answer: `{"hookSpecificOutput":"deny"}`,
		want: schema.Result{Decision: `hookSpecificOutput: "deny"`, HookErrors: []string{"hookSpecificOutput is a string; it must be an object"}}},
	{name: "beside a known yes", answer: `{"decision":"allow","hookSpecificOutput":{"permissionDecision":"DENY"}}`, want: decided("DENY", "")},
	{name: "beside allowed true", answer: `{"decision":"no","allowed":true}`, want: decided("no", "")},
	{name: "allowed that is not a boolean", answer: `{"allowed":"false"}`, want: decided(`allowed: "false"`, "")},
	{name: "bytes that are not text", answer: "{\"decision\":[\"\x9b\"]}", want: decided("[\"\uFFFD\"]", "")},
	{name: "a very long word is cut", answer: `{"decision":"` + strings.Repeat("é", 1000) + `"}`, want: decided(schema.Decision(strings.Repeat("é", 32)+"…"), "")},
}

// Each faulty part is dropped and reported, and the rest stays.
var faultyAnswers = []answerCase{
	{name: "members of wrong types", event: schema.PreToolUse, answer: `{"decision":"deny","reason":5,"effects":{},"inject":"x","injections":7,
		"hook_errors":"x","modified_args":{"a":1},"metadata":[],"hookSpecificOutput":true,"continue":"no"}`, want: decided(schema.Deny, ""),
		faults: []string{
			"reason is a number; it must be a string", "effects is an object; it must be a list", "inject is a string; it must be an object",
			"injections is a number; it must be a list", "hook_errors is a string; it must be a list", "modified_args is an object; it must be a string",
			"metadata is a list; it must be an object", "hookSpecificOutput is a boolean; it must be an object", "continue is a string; it must be a boolean",
		}},
	{name: "parts of lists", event: schema.PostToolUse, answer: `{"injections":[5,{"content":"kept"},{"content":6}],"hook_errors":[1,"kept"]}`,
		want:   schema.Result{Injections: []schema.Injection{{Content: "kept"}}},
		faults: []string{"injections is a number", "injections.content is a number", "hook_errors is a number", "kept"}},
	{name: "a strategy that is not a string", event: schema.PostToolUse, answer: `{"inject":{"content":"x","strategy":1}}`,
		want: schema.Result{Injections: []schema.Injection{{Content: "x"}}}, faults: []string{"inject.strategy is a number"}},
	{name: "modified_args without an object", event: schema.PreToolUse, answer: `{"decision":"deny","modified_args":"[1]"}`,
		want: decided(schema.Deny, ""), faults: []string{"modified_args is not a JSON object in a string"}},
	{name: "modified_args that name a member twice", event: schema.PreToolUse, answer: `{"modified_args":"{\"a\":1,\"a\":2}"}`, faults: []string{"modified_args"}},
	{name: "another event's name", event: schema.PreToolUse, answer: `{"hookSpecificOutput":{"hookEventName":"PostToolUse","permissionDecision":"deny"}}`,
		want: decided(schema.Deny, ""), faults: []string{`hookEventName is "PostToolUse" at the event PreToolUse`}},
	{name: "members of Claude Code's form", event: schema.PreToolUse, answer: `{"decision":"deny","continue":false,"stopReason":1,"hookSpecificOutput":{"hookEventName":1,"permissionDecisionReason":[],"additionalContext":{}}}`,
		want: decided(schema.Fail, ""), faults: []string{"hookEventName is a number", "permissionDecisionReason is a list", "additionalContext is an object", "stopReason is a number"}},
}

func TestAnswersAreReadInEveryForm(t *testing.T) {
	for _, c := range goodAnswers {
		t.Run(c.name, func(t *testing.T) { c.run(t) })
	}
	for _, c := range unknownDecisions {
		for _, event := range schema.EventTypes() {
			c.event = event
			t.Run("unknown decision: "+c.name+" at "+string(event), func(t *testing.T) { c.run(t) })
		}
	}
	for _, c := range faultyAnswers {
		t.Run("faulty: "+c.name, func(t *testing.T) { c.run(t) })
	}
}

func (c answerCase) run(t *testing.T) {
	got, err := schema.DecodeResult(c.event, []byte(c.answer))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.faults) > 0 {
		checkFaults(t, got.HookErrors, c.faults)
		got.HookErrors = nil
	}
	if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s reads as (-want +got):\n%s", c.answer, diff)
	}
}

func checkFaults(t *testing.T, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d hook errors, want %d: %q", len(got), len(want), got)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("hook error %d is %q; it must say %q", i, got[i], want[i])
		}
	}
}

func TestAnInvalidAnswerIsAnError(t *testing.T) {
	for name, c := range map[string]struct{ answer, sentence string }{
		"nothing":                             {"", "the answer is empty"},
		"blanks":                              {" \n\t", "the answer is empty"},
		"plain text":                          {"all good", "the answer is not valid JSON"},
		"a list":                              {"[]", "the answer is a list; a hook answers with one JSON object"},
		"a string":                            {`"allow"`, "the answer is a string"},
		"null":                                {"null", "the answer is null"},
		"true":                                {"true", "the answer is a boolean"},
		"plain text with a t":                 {"the file is fine", "the answer is not valid JSON"},
		"a number and a word":                 {"3 files", "the answer is not valid JSON"},
		"a cut object":                        {`{"decision":"allow"`, "not valid JSON"},
		"two objects":                         {`{"decision":"allow"} {}`, "after top-level value"},
		"text after the object":               {"{}\nok", "after top-level value"},
		"a decision twice":                    {`{"decision":"deny","decision":"allow"}`, `duplicate object member name "decision"`},
		"a nested name twice":                 {`{"updated_input":{"a":{"b":1,"b":2}}}`, "duplicate object member name"},
		"an error of its own":                 {`{"error":"no database"}`, `the answer has members that the contract does not know, {"error":"no database"},`},
		"a misspelt decision":                 {`{"desicion":"deny"}`, `has members that the contract does not know`},
		"another runtime's":                   {`{"permission":"deny","user_message":"no"}`, `has members that the contract does not know`},
		"another letter's case":               {`{"Decision":"deny"}`, `has members that the contract does not know`},
		"an empty name":                       {`{"":null}`, `has members that the contract does not know`},
		"a misspelt decision with its reason": {`{"desicion":"deny","reason":"no"}`, `does not know, {"desicion":"deny"}, and beside them none or only an explanation such as reason`},
		"a reason that is null":               {`{"desicion":"deny","reason":null}`, `has members that the contract does not know`},
		"MassGen's reason":                    {`{"alowd":false,"metadata":{"reason":"no"}}`, `has members that the contract does not know`},
		"a reason of Claude Code's to stop":   {`{"contnue":false,"stopReason":"no"}`, `has members that the contract does not know`},
		"Claude Code's decision one level too high": {`{"hookSpecificOutput":{"hookEventName":"PreToolUse"},"permissionDecision":"deny","permissionDecisionReason":"no"}`,
			`does not know, {"permissionDecision":"deny",`},
		"beside Claude Code's part that is null": {`{"desicion":"deny","hookSpecificOutput":null}`, `has members that the contract does not know`},
		"words for a user only":                  {`{"permission":"deny","systemMessage":"no","suppressOutput":true}`, `has members that the contract does not know`},
		"deep nesting":                           {`{"value":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`, "nests deeper than 1000 levels"},
		"a MiB of brackets":                      {`{"value":` + strings.Repeat("[", 1<<20), "nests deeper than"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := schema.DecodeResult(schema.PreToolUse, []byte(c.answer))
			if err == nil || !strings.Contains(err.Error(), c.sentence) {
				t.Errorf("error %v; it must say %q", err, c.sentence)
			}
			if diff := cmp.Diff(schema.Result{}, got); diff != "" {
				t.Errorf("an error comes with a result: %s", diff)
			}
			if err != nil && len(err.Error()) > schema.MaxReason {
				t.Errorf("the sentence has %d bytes", len(err.Error()))
			}
		})
	}
}

// An answer within the limit must also fit into a reply, a heartbeat and a record.
func TestTheDeepestAnswerCanBePassedOn(t *testing.T) {
	n := schema.MaxDepth - 1
	answer := `{"value":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	res, err := schema.DecodeResult(schema.BeforeLLMCall, []byte(answer))
	if err != nil {
		t.Fatal(err)
	}
	b := schema.Beat{Batches: []schema.BatchProgress{{Outcomes: []schema.Outcome{{Result: res}}}}}
	if _, err := schema.Marshal(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := schema.DecodeResult(schema.BeforeLLMCall, []byte(`{"value":"`+strings.Repeat(`[\"{`, 1<<16)+`"}`)); err != nil {
		t.Errorf("brackets inside a string count as nesting: %v", err)
	}
}

func TestBlockedIsTheMeaningOfExitCodeTwo(t *testing.T) {
	for _, event := range schema.EventTypes() {
		fromExit := schema.Blocked(event, "no")
		fromAnswer, err := schema.DecodeResult(event, []byte(`{"decision":"block","reason":"no"}`))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(fromExit, fromAnswer); diff != "" {
			t.Errorf("%s: exit code 2 and block differ: %s", event, diff)
		}
		legal := !slices.Contains([]schema.EventType{schema.QueryEnd, schema.SessionStart, schema.SessionEnd, schema.BeforeLLMCall, schema.AfterLLMCall}, event)
		if event.Permits(fromExit.Decision) != legal {
			t.Errorf("%s: block becomes %q, legal: %v", event, fromExit.Decision, !legal)
		}
	}
}

func TestConstructorsMakeTheResultsOfTheirNames(t *testing.T) {
	for name, c := range map[string]struct {
		got    schema.Result
		answer string
	}{
		"allowed":   {schema.Allowed(), `{"decision":"allow"}`},
		"denied":    {schema.Denied("r"), `{"decision":"deny","reason":"r"}`},
		"asked":     {schema.Asked("r"), `{"decision":"ask","reason":"r"}`},
		"injected":  {schema.Injected("c", schema.UserMessage), `{"inject":{"content":"c","strategy":"user_message"}}`},
		"rewritten": {schema.Rewritten(raw(`{}`)), `{"updated_input":{}}`},
	} {
		want, err := schema.DecodeResult(schema.PreToolUse, []byte(c.answer))
		if diff := cmp.Diff(want, c.got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
}

func TestATooLargeResultKeepsItsDecision(t *testing.T) {
	big := schema.Result{Decision: schema.Deny, Reason: strings.Repeat("é", schema.MaxReason), Value: raw(`"v"`)}
	small := big.Trimmed()
	if small.Decision != schema.Deny || small.Value != nil || small.Size() > schema.MaxReason+16 || !utf8.ValidString(small.Reason) {
		t.Errorf("kept: %q, %d bytes", small.Decision, small.Size())
	}
}

// Every part of a result counts against the limit of its size.
func TestSizeCountsEveryPart(t *testing.T) {
	for _, file := range list(t, wireDir, ".json") {
		if !strings.HasPrefix(file, "result") {
			continue
		}
		var r schema.Result
		data := read(t, filepath.Join(wireDir, file))
		decode(t, data, &r)
		words := bytes.Count(data, []byte(`"`))*16 + 64
		if n := r.Size(); n > len(data) || n < len(data)-words {
			t.Errorf("%s: Size is %d of %d bytes", file, n, len(data))
		}
	}
	long := schema.Result{Decision: schema.Decision(strings.Repeat("x", 100))}
	if long.Size() < 100 {
		t.Error("a long decision does not count")
	}
}
