package sdktest_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/internal/model/gen"
	"github.com/hookfabric/hookfabric/schema"
)

// interpreter returns the Python interpreter for the tests.
func interpreter(t *testing.T) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("SKIPPED: no python3 on the PATH, so bus/agent/python/hookfabric.py is not tested")
	}
	return python
}

// driven runs a script of testdata with data on stdin, and returns its output.
func driven(t *testing.T, script string, data []byte) []byte {
	t.Helper()
	for _, file := range []string{"hookfabric.py", "testdata/" + script} {
		if _, err := os.ReadFile(filepath.Join(pythonDir, file)); err != nil { // so that `go test` runs this again after a change
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, interpreter(t), "-B", "-W", "error", "testdata/"+script)
	cmd.Dir = pythonDir
	cmd.Env = []string{"PYTHONPATH=.", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	cmd.Stdin = bytes.NewReader(data)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, stderr.Bytes())
	}
	return out
}

// A call has one event, its hooks and their outcomes.
type call struct {
	Event    schema.EventType `json:"event"`
	Hooks    []schema.Hook    `json:"hooks"`
	Outcomes []schema.Outcome `json:"outcomes"`
}

// drawn returns a call whose answers have legal and illegal parts. With large, an answer may
// exceed the size limit.
func drawn(seed int, large bool) call {
	c := call{Event: schema.EventTypes()[seed%len(schema.EventTypes())]}
	for i := range 1 + seed%4 {
		h := gen.Hooks(c.Event, gen.Shape{}).Example(seed*7 + i)
		h.Name, h.Event = "hook-"+string(rune('a'+i)), c.Event
		o := outcome(c.Event, seed*7+i)
		if _, err := schema.Marshal(o); err != nil || o.Result.Size() > schema.MaxResult && !large {
			continue // it is not JSON, so Python never sees it
		}
		c.Hooks, c.Outcomes = append(c.Hooks, h), append(c.Outcomes, o)
	}
	return c
}

func outcome(event schema.EventType, seed int) schema.Outcome {
	o := schema.Outcome{Result: gen.Results(event).Example(seed), Took: schema.Duration(seed), Worker: "w"}
	kinds := append(schema.OutcomeKinds(), "", "", "", "", "", "", schema.OK, "of a newer worker")
	o.Kind = kinds[seed/11%len(kinds)]
	if o.Kind != schema.OK && o.Kind != "" && seed%2 == 0 {
		o.Error = "it broke"
	}
	if seed%13 == 0 {
		o.Result.HookErrors = []string{"it says so itself"}
	}
	return o
}

// TestPythonFoldsAsTheFabricDoes compares the fold in Python with that of bus/dispatch. Both
// must return the same verdict for all answers of hooks.
func TestPythonFoldsAsTheFabricDoes(t *testing.T) {
	t.Parallel()
	interpreter(t)
	var calls []call
	large, judged := 0, 0
	for seed := range 4000 {
		c := drawn(seed, large < 10)
		for i := range c.Outcomes {
			judged++
			if c.Outcomes[i].Result.Size() > schema.MaxResult {
				large++
			}
		}
		calls = append(calls, c)
	}
	if judged < 5000 || large == 0 {
		t.Fatalf("the test needs 5000 outcomes, and large ones; it has %d, and %d large ones", judged, large)
	}
	data, err := schema.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	judgedAlike(t, calls, data)
}

// TestPythonReadsUnknownMembersAsTheFabricDoes checks that a result with an unknown
// member, whose known members only explain, is an error of its hook in both languages.
func TestPythonReadsUnknownMembersAsTheFabricDoes(t *testing.T) {
	t.Parallel()
	data := guarded([]string{`{"desicion":"deny"}`, `{"error":"no"}`, `{"permission":"deny"}`, `{}`, `{"permission":"deny","decision":"allow"}`, `{"x":1,"reason":""}`,
		`{"desicion":"deny","reason":"no"}`, `{"reason":"no"}`, `{"x":1,"reason":"no","hook_errors":[]}`})
	var calls []call
	if err := schema.Unmarshal(data, &calls); err != nil {
		t.Fatal(err)
	}
	judgedAlike(t, calls, data)
	for i, want := range []schema.Decision{schema.Deny, schema.None, schema.Deny, schema.None, schema.Deny, schema.None, schema.None, schema.None,
		schema.Allow, schema.Allow, schema.Deny, schema.None, schema.Deny, schema.None, schema.None, schema.None, schema.None, schema.None} {
		if got := dispatch.Settle(&calls[i].Hooks[0], &calls[i].Outcomes[0]); got.Decision != want {
			t.Errorf("call %d is %q, want %q: %q", i, got.Decision, want, got.HookErrors)
		}
	}
}

// TestPythonReadsEachKnownMemberBesideAnUnknownOne checks that an unknown member has the
// same effect in Python and Go beside each known member, set, empty or null.
func TestPythonReadsEachKnownMemberBesideAnUnknownOne(t *testing.T) {
	t.Parallel()
	members := map[string][]string{
		"decision": {`"deny"`, `"allow"`, `""`}, "reason": {`"no"`, `""`}, "updated_input": {`{}`}, "updated_output": {`1`}, "value": {`""`},
		"effects": {`[]`, `[{"set_flag":{"a":1}}]`}, "injections": {`[]`, `[{"content":"c"}]`}, "hook_errors": {`[]`, `["e"]`},
	}
	var results []string
	for name, values := range members {
		for _, value := range append(values, "null") {
			for _, reason := range []string{"", `,"reason":"no"`} {
				if name != "reason" || reason == "" {
					results = append(results, `{"x":1,"`+name+`":`+value+reason+`}`)
				}
			}
		}
	}
	data := guarded(results)
	var calls []call
	if err := schema.Unmarshal(data, &calls); err != nil {
		t.Fatal(err)
	}
	judgedAlike(t, calls, data)
}

// guarded returns calls at PreToolUse. Each has one hook, fail-closed or not, that
// answers with one of the results.
func guarded(results []string) []byte {
	data := []byte(`[`)
	for _, result := range results {
		for _, guard := range []string{"true", "false"} {
			data = append(data, `{"event":"PreToolUse","hooks":[{"name":"guard","event":"PreToolUse","fail_closed":`+guard+`}],"outcomes":[{"hook":0,"result":`+result+`}]},`...)
		}
	}
	data[len(data)-1] = ']'
	return data
}

// judgedAlike compares the verdicts of Python and Go on calls. data is calls as JSON.
func judgedAlike(t *testing.T, calls []call, data []byte) {
	t.Helper()
	var answers []schema.Verdict
	if err := schema.Unmarshal(driven(t, "fold_driver.py", data), &answers); err != nil || len(answers) != len(calls) {
		t.Fatalf("%d verdicts, %v", len(answers), err)
	}
	for i, c := range calls {
		var want schema.Verdict
		for j := range c.Hooks {
			want = dispatch.Fold(c.Event, want, dispatch.Settle(&c.Hooks[j], &c.Outcomes[j]))
		}
		dispatch.KeepFeedback(c.Event, &want)
		if diff := cmp.Diff(plain(t, want), plain(t, answers[i])); diff != "" {
			asked, _ := schema.Marshal(c)
			t.Fatalf("call %d: Go (-), Python (+):\n%s\n%.3000s", i, diff, asked)
		}
	}
}

// plain converts v to maps and slices, through JSON.
func plain(t *testing.T, v any) any {
	t.Helper()
	data, err := schema.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := schema.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPythonHasTheTableOfEvents compares the tables of permitted decisions in Go and Python.
func TestPythonHasTheTableOfEvents(t *testing.T) {
	t.Parallel()
	stops := map[schema.ValueKind]string{schema.NoValue: "", schema.MessageValue: "message", schema.ToolResultValue: "tool_result", schema.ResponseValue: "response"}
	rewrites := map[schema.Rewrite]string{schema.NoRewrite: "", schema.RewriteInput: "input", schema.RewriteOutput: "output",
		schema.RewriteMessage: "message", schema.RewriteResponse: "response"}
	want := map[string]any{}
	for _, e := range schema.EventTypes() {
		want[string(e)] = []any{e.Decisions(), stops[e.StopValue()], rewrites[e.Rewrites()], e.Chains(), e.Blocking()}
	}
	var answers any
	if err := schema.Unmarshal(driven(t, "fold_driver.py", []byte(`"table"`)), &answers); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain(t, want), answers); diff != "" {
		t.Errorf("Go (-), Python (+):\n%s", diff)
	}
}

// A dropping is a conversation and an effect that removes messages from it.
type dropping struct {
	Messages []schema.Message `json:"messages"`
	Effect   schema.Effect    `json:"effect"`
}

// talk draws a conversation with calls, results of some calls, and other messages.
func talk(t *rapid.T) []schema.Message {
	var all []schema.Message
	for range rapid.IntRange(0, 8).Draw(t, "messages") {
		text := rapid.SampledFrom([]string{"", "a", "ab", "b"}).Draw(t, "text")
		switch role := rapid.SampledFrom([]string{"system", "user", "assistant", "tool", "calls"}).Draw(t, "role"); role {
		case "tool":
			all = append(all, schema.Message{Role: role, Result: &schema.ToolOutcome{Name: "t", Output: jsontext.Value(`"` + text + `"`)}})
		case "calls":
			n := rapid.IntRange(1, 3).Draw(t, "calls")
			one := schema.Message{Role: schema.RoleAssistant, Content: text}
			for range n {
				one.ToolCalls = append(one.ToolCalls, schema.ToolCall{Name: "t", Input: jsontext.Value("{}")})
			}
			all = append(all, one)
			for range rapid.IntRange(max(0, n-1), n).Draw(t, "results") {
				all = append(all, schema.Message{Role: schema.RoleTool, Result: &schema.ToolOutcome{Name: "t", Error: "e" + text}})
			}
		default:
			all = append(all, schema.Message{Role: role, Content: text})
		}
	}
	return all
}

func TestPythonDropsTheSameMessages(t *testing.T) {
	t.Parallel()
	interpreter(t)
	cases := rapid.Custom(func(t *rapid.T) dropping {
		d := &schema.DropMessages{Role: rapid.SampledFrom([]string{"", "", "system", "user", "assistant", "tool"}).Draw(t, "of"),
			Containing: rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(t, "containing")}
		switch n := rapid.IntRange(0, 3).Draw(t, "many"); rapid.IntRange(0, 2).Draw(t, "from") {
		case 0:
			d.First = n
		case 1:
			d.Last = n
		}
		return dropping{Messages: append([]schema.Message{}, talk(t)...), Effect: schema.Effect{DropMessages: d}}
	})
	var asked []dropping
	for seed := range 2000 {
		if c := cases.Example(seed); c.Effect.Check() == nil {
			asked = append(asked, c)
		}
	}
	data, err := schema.Marshal(asked)
	if err != nil || len(asked) < 1000 {
		t.Fatal(len(asked), err)
	}
	var answers []struct {
		Messages []schema.Message `json:"messages"`
		Fault    string           `json:"fault"`
	}
	if err := schema.Unmarshal(driven(t, "fold_driver.py", data), &answers); err != nil || len(answers) != len(asked) {
		t.Fatal(len(answers), err)
	}
	for i, c := range asked {
		if diff := cmp.Diff(plain(t, c.Effect.DropMessages.Apply(c.Messages)), plain(t, answers[i].Messages)); diff != "" || answers[i].Fault != "" {
			one, _ := schema.Marshal(c)
			t.Fatalf("Go (-), Python (+):\n%s%s\n%s", diff, answers[i].Fault, one)
		}
	}
}
