package python_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/dispatch/model/gen"
	"github.com/hookfabric/hookfabric/schema"
)

// interpreter is the Python to test with.
func interpreter(t *testing.T) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 on the PATH: bus/client/python/hookfabric.py stays untested")
	}
	return python
}

// driven has a script of testdata read data on stdin, and returns what it writes.
func driven(t *testing.T, script string, data []byte) []byte {
	t.Helper()
	for _, file := range []string{"hookfabric.py", "testdata/" + script} {
		if _, err := os.ReadFile(file); err != nil { // so that `go test` knows what this is about
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, interpreter(t), "-B", "-W", "error", "testdata/"+script)
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

// A call is what some hooks of one event said.
type call struct {
	Event    schema.EventType `json:"event"`
	Hooks    []schema.Hook    `json:"hooks"`
	Outcomes []schema.Outcome `json:"outcomes"`
}

// drawn is a call, whose answers are legal in some parts and in others not. large says
// whether one may be larger than an answer may be.
func drawn(seed int, large bool) call {
	c := call{Event: schema.EventTypes()[seed%len(schema.EventTypes())]}
	for i := range 1 + seed%4 {
		h := gen.Hooks(c.Event, gen.Shape{}).Example(seed*7 + i)
		h.Name, h.Event = "hook-"+string(rune('a'+i)), c.Event
		o := outcome(c.Event, seed*7+i)
		if _, err := schema.Marshal(o); err != nil || o.Result.Size() > schema.MaxResult && !large {
			continue // no answer in JSON, which Python never sees
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

// There is one judgement in the fabric, and the Python of agents has it again:
// whatever hooks answer, both must come to the same.
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
		t.Fatalf("that are too few: %d outcomes, %d of them too large", judged, large)
	}
	data, err := schema.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	var said []schema.Verdict
	if err := schema.Unmarshal(driven(t, "fold_driver.py", data), &said); err != nil || len(said) != len(calls) {
		t.Fatalf("%d verdicts, %v", len(said), err)
	}
	for i, c := range calls {
		var want schema.Verdict
		for j := range c.Hooks {
			want = dispatch.Fold(c.Event, want, dispatch.Settle(&c.Hooks[j], &c.Outcomes[j]))
		}
		if diff := cmp.Diff(plain(t, want), plain(t, said[i])); diff != "" {
			asked, _ := schema.Marshal(c)
			t.Fatalf("call %d: Go (-), Python (+):\n%s\n%.3000s", i, diff, asked)
		}
	}
}

// plain is v as plain JSON: in Go's words, whatever is left out.
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

// What may be decided where is one table in Go and one in Python.
func TestPythonHasTheTableOfEvents(t *testing.T) {
	t.Parallel()
	stops := map[schema.ValueKind]string{schema.NoValue: "", schema.MessageValue: "message", schema.ToolResultValue: "tool_result"}
	rewrites := map[schema.Rewrite]string{schema.NoRewrite: "", schema.RewriteInput: "input", schema.RewriteOutput: "output",
		schema.RewriteMessage: "message", schema.RewriteResponse: "response"}
	want := map[string]any{}
	for _, e := range schema.EventTypes() {
		want[string(e)] = []any{e.Decisions(), stops[e.StopValue()], rewrites[e.Rewrites()], e.Chains(), e.Blocking()}
	}
	var said any
	if err := schema.Unmarshal(driven(t, "fold_driver.py", []byte(`"table"`)), &said); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain(t, want), said); diff != "" {
		t.Errorf("Go (-), Python (+):\n%s", diff)
	}
}

// A dropping is a conversation out of which an effect takes messages.
type dropping struct {
	Messages []schema.Message `json:"messages"`
	Effect   schema.Effect    `json:"effect"`
}

// talk draws a conversation: calls, results of all of them or of some, and what else is said.
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
	var said []struct {
		Messages []schema.Message `json:"messages"`
		Fault    string           `json:"fault"`
	}
	if err := schema.Unmarshal(driven(t, "fold_driver.py", data), &said); err != nil || len(said) != len(asked) {
		t.Fatal(len(said), err)
	}
	for i, c := range asked {
		if diff := cmp.Diff(plain(t, c.Effect.DropMessages.Apply(c.Messages)), plain(t, said[i].Messages)); diff != "" || said[i].Fault != "" {
			one, _ := schema.Marshal(c)
			t.Fatalf("Go (-), Python (+):\n%s%s\n%s", diff, said[i].Fault, one)
		}
	}
}
