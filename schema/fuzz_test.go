package schema_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// seed adds every golden file with the prefix to a fuzz target.
func seed(f *testing.F, prefix string, add func(data []byte)) {
	f.Helper()
	for _, pattern := range []string{wireDir + "/" + prefix + "*.json", wireDir + "/newer/" + prefix + "*.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			add(read(f, file))
		}
	}
}

func FuzzDecodeEvent(f *testing.F) {
	seed(f, "event.", func(data []byte) { f.Add(data, "Bash") })
	f.Add([]byte("{\"tool_input\":{\"a\":\"\xff\\ud800\"}}"), "")
	f.Fuzz(func(t *testing.T, body []byte, tool string) {
		r := preToolUse
		r.Tool = tool
		e, err := schema.DecodeEvent(body, r)
		if err != nil {
			return
		}
		if e.HookType != r.Event || e.AgentID != r.Agent || e.SessionID != r.Session || e.EventID != r.ID || e.ToolName != tool {
			t.Fatalf("the body overruled the routing facts: %+v", e)
		}
		if k := e.ToolInput.Kind(); len(e.ToolInput) > 0 && k != '{' {
			t.Fatalf("tool_input is %q", e.ToolInput)
		}
		encoded := stable(t, e, new(schema.Event))
		if _, err := schema.DecodeEvent(encoded, schema.Routing{Event: r.Event, Tool: strings.ToValidUTF8(tool, "\uFFFD")}); err != nil && strings.ToValidUTF8(tool, "") == tool {
			t.Fatalf("what a handler would see cannot be read: %v", err)
		}
	})
}

func FuzzDecodeResult(f *testing.F) {
	types := schema.EventTypes()
	for i := range types {
		for _, c := range slices.Concat(goodAnswers, unknownDecisions, faultyAnswers) {
			if c.event == types[i] || c.event == "" {
				f.Add(i, []byte(c.answer))
			}
		}
		seed(f, "result", func(data []byte) { f.Add(i, data) })
	}
	f.Fuzz(func(t *testing.T, i int, answer []byte) {
		event := types[((i%len(types))+len(types))%len(types)]
		r, err := schema.DecodeResult(event, answer)
		if err != nil {
			return
		}
		encoded := stable(t, &r, new(schema.Result))
		again, err := schema.DecodeResult(event, encoded)
		if err != nil {
			t.Fatalf("a result is no answer: %v", err)
		}
		if again.Decision != r.Decision {
			t.Fatalf("as an answer it decides %q, not %q", again.Decision, r.Decision)
		}
		if r.Decision == schema.Allow || r.Decision == schema.None || r.Decision == schema.Continue {
			mustPermit(t, event, answer, r.Decision)
		}
	})
}

// mustPermit fails if an answer that permits, or has no opinion, has another word in one
// of the places of a decision.
func mustPermit(t *testing.T, event schema.EventType, answer []byte, d schema.Decision) {
	t.Helper()
	var a struct {
		Decision jsontext.Value `json:"decision"`
		Allowed  jsontext.Value `json:"allowed"`
		Continue jsontext.Value `json:"continue"`
	}
	decode(t, answer, &a)
	lenient := []string{"", "null", `"continue"`, `"allow"`, `"approve"`}
	if event == schema.BeforeFinalResponse && a.Continue.Kind() == 'f' {
		lenient = append(lenient, `"block"`, `"retry"`)
	}
	word := plain(t, a.Decision)
	if !slices.Contains(lenient, word) {
		t.Fatalf("the decision %s counts as %q", word, d)
	}
	if k := a.Allowed.Kind(); len(a.Allowed) > 0 && k != 't' {
		t.Fatalf("allowed: %s counts as %q", a.Allowed, d)
	}
}

// plain decodes the escapes in a value.
func plain(t *testing.T, v jsontext.Value) string {
	t.Helper()
	if v.Kind() != '"' {
		return string(v)
	}
	var s string
	decode(t, v, &s)
	encoded, err := schema.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func FuzzVerdictRoundTrip(f *testing.F) {
	seed(f, "verdict.", func(data []byte) { f.Add(data) })
	f.Fuzz(func(t *testing.T, data []byte) {
		v := new(schema.Verdict)
		if schema.Unmarshal(data, v) == nil {
			stable(t, v, new(schema.Verdict))
		}
	})
}

// stable encodes v, decodes it into fresh and encodes that again. The bytes must be
// equal, and valid in the strictest dialect of JSON.
func stable(t *testing.T, v, fresh any) []byte {
	t.Helper()
	first, err := schema.Marshal(v)
	if err != nil {
		t.Fatalf("what was read cannot be written: %v", err)
	}
	if !jsontext.Value(first).IsValid() {
		t.Fatalf("a strict reader refuses %q", first)
	}
	decode(t, first, fresh)
	second, err := schema.Marshal(fresh)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, second) {
		t.Fatalf("not stable:\n%s\n%s", first, second)
	}
	return first
}
