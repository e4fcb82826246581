package schema_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

func TestRoutingFactsOverruleTheBody(t *testing.T) {
	body := `{"hook_type":"SessionEnd","agent_id":"root","session_id":"other","event_id":"e0","tool_name":"Bash","iteration":2}`
	got, err := schema.DecodeEvent([]byte(body), preToolUse)
	if err != nil {
		t.Fatal(err)
	}
	want := &schema.Event{
		HookType: schema.PreToolUse, AgentID: "agent1", SessionID: "7be05901-cf1a-4925", EventID: eventID, ToolName: "Bash", Iteration: 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRoutingIsNeverTakenFromTheBody(t *testing.T) {
	got, err := schema.DecodeEvent([]byte(`{"session_id":"forged"}`), schema.Routing{Event: schema.SessionEnd, Agent: "a"})
	if err != nil || got.SessionID != "" {
		t.Errorf("session %q, %v; it must be empty", got.SessionID, err)
	}
}

func TestAnotherToolInTheBodyIsAMismatch(t *testing.T) {
	for name, c := range map[string]struct {
		header, body string
		mismatch     bool
	}{
		"the same tool":            {"Bash", `{"tool_name":"Bash"}`, false},
		"a body that names none":   {"Bash", `{}`, false},
		"a body with a null":       {"Bash", `{"tool_name":null}`, false},
		"another tool":             {"Read", `{"tool_name":"Bash"}`, true},
		"a header that names none": {"", `{"tool_name":"Bash"}`, true},
		"another case":             {"bash", `{"tool_name":"Bash"}`, true},
		"a blank":                  {"Bash", `{"tool_name":"Bash "}`, true},
		"an escaped spelling":      {"Bash", `{"tool_name":"\u0042ash"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := schema.DecodeEvent([]byte(c.body), schema.Routing{Event: schema.PreToolUse, Tool: c.header})
			m, ok := errors.AsType[*schema.Mismatch](err)
			if ok != c.mismatch || !ok && err != nil {
				t.Fatalf("%v; mismatch must be %v", err, c.mismatch)
			}
			if ok && (m.Header != c.header || !strings.Contains(m.Error(), "Hook-Tool")) {
				t.Errorf("%+v: %v", m, m)
			}
		})
	}
}

func TestInvalidEventsAreErrors(t *testing.T) {
	for body, sentence := range map[string]string{
		``:                              "the event is not valid JSON",
		`null`:                          "the event is null; it must be a JSON object",
		`no JSON`:                       "the event is not valid JSON; it must be a JSON object",
		`[]`:                            "the event is a list; it must be a JSON object",
		`"x"`:                           "the event is a string; it must be a JSON object",
		`{"tool_input":[]}`:             "the event's tool_input is a list; it must be a JSON object",
		`{"tool_input":"ls"}`:           "the event's tool_input is a string; it must be a JSON object",
		`{"tool_input":0}`:              "the event's tool_input is a number",
		`{"tool_input":false}`:          "the event's tool_input is a boolean",
		`{"tool_input":{"a":1,"a":2}}`:  `duplicate object member name "a" within "/tool_input"`,
		`{"prompt":"a","prompt":"b"}`:   `duplicate object member name "prompt"`,
		`{"tool_name":5}`:               "the event's tool_name is a number; it must be a string",
		`{"hook_type":{}}`:              "the event's hook_type is an object; it must be a string",
		`{"labels":{"a":1}}`:            "the event's labels.a is a number; it must be a string",
		`{"labels":[]}`:                 "the event's labels is a list; it must be an object",
		`{"iteration":1.5}`:             "the event's iteration is 1.5; it must be a whole number",
		`{"iteration":"2"}`:             "the event's iteration is a string; it must be a whole number",
		`{"timestamp":"yesterday"}`:     `the event's timestamp is a string; it must be a time such as "2026-11-21T10:00:00Z"`,
		`{"timestamp":1763719200}`:      `the event's timestamp is a number; it must be a time`,
		`{"prompt":"a`:                  "the event is not valid JSON",
		`{} {}`:                         "after top-level value",
		strings.Repeat(`{"a":`, 20_000): "exceeded max depth",
		`{"tool_output":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`: "the event nests deeper than 1000 levels; flatten it",
		`{"` + strings.Repeat("x", 1<<20):                                               "the event is not valid JSON",
	} {
		_, err := schema.DecodeEvent([]byte(body), preToolUse)
		if err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%.60s: %v; want %q", body, err, sentence)
		}
		if err != nil && (strings.Contains(err.Error(), "schema.") || len(err.Error()) > schema.MaxReason) {
			t.Errorf("%.60s: no sentence for a person: %v", body, err)
		}
	}
}

func TestImpreciseEventsAreRead(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"a null input counts as absent":  {`{"tool_input":null}`, `{"hook_type":"PreToolUse"}`},
		"an empty input is kept":         {`{"tool_input": {} }`, `{"hook_type":"PreToolUse","tool_input":{}}`},
		"a null output is an output":     {`{"tool_output":null}`, `{"hook_type":"PreToolUse","tool_output":null}`},
		"numbers stay as written":        {`{"tool_input":{"n":1.0e3,"big":123456789012345678901}}`, `{"hook_type":"PreToolUse","tool_input":{"n":1.0e3,"big":123456789012345678901}}`},
		"invalid UTF-8 is replaced":      {"{\"tool_input\":{\"a\":\"x\xffy\"},\"prompt\":\"p\xff\"}", `{"hook_type":"PreToolUse","tool_input":{"a":"x` + "\uFFFD" + `y"},"prompt":"p` + "\uFFFD" + `"}`},
		"a lone surrogate is replaced":   {`{"tool_input":{"a":"\ud800"},"prompt":"\udc00"}`, `{"hook_type":"PreToolUse","tool_input":{"a":"` + "\uFFFD" + `"},"prompt":"` + "\uFFFD" + `"}`},
		"unknown members are ignored":    {`{"trace":{"a":[1]},"Prompt":"x"}`, `{"hook_type":"PreToolUse"}`},
		"a time keeps its zone":          {`{"timestamp":"2026-11-21T10:00:00.5+02:00"}`, `{"hook_type":"PreToolUse","timestamp":"2026-11-21T10:00:00.5+02:00"}`},
		"a null time counts as absent":   {`{"timestamp":null}`, `{"hook_type":"PreToolUse"}`},
		"members in any order, spaced":   {" {\n \"prompt\" : \"a\" ,\t\"cwd\":\"/\" }\r\n", `{"hook_type":"PreToolUse","prompt":"a","cwd":"/"}`},
		"labels come out in their order": {`{"labels":{"b":"2","a":"1"}}`, `{"hook_type":"PreToolUse","labels":{"a":"1","b":"2"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := schema.DecodeEvent([]byte(c.body), schema.Routing{Event: schema.PreToolUse})
			if err != nil {
				t.Fatal(err)
			}
			got, err := schema.Marshal(e)
			if err != nil || string(got) != c.want {
				t.Errorf("%s, %v; want %s", got, err, c.want)
			}
		})
	}
}

// Names that differ only in replaced bytes would become equal in a handler, where two
// readers may pick different ones.
func TestNamesThatBecomeEqualAreRejected(t *testing.T) {
	for _, body := range []string{
		"{\"tool_input\":{\"a\xff\":1,\"a\xfe\":2}}",
		`{"tool_input":{"\ud800":1,"\ud801":2}}`,
	} {
		if e, err := schema.DecodeEvent([]byte(body), preToolUse); err == nil {
			_, encoded := schema.Marshal(e)
			t.Errorf("%q was read; encoding it again: %v", body, encoded)
		}
	}
}

func TestMarginLeavesTimeToAnswer(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{
		30 * time.Second: 1500 * time.Millisecond, time.Second: 50 * time.Millisecond, 400 * time.Millisecond: 20 * time.Millisecond,
		100 * time.Millisecond: 20 * time.Millisecond, 30 * time.Millisecond: 15 * time.Millisecond, 2: 1, 1: 0, 0: 0,
	} {
		if got := schema.Margin(left); got != want {
			t.Errorf("Margin(%v) = %v, want %v", left, got, want)
		}
	}
}

func TestMarginsAreNeverMoreThanHalf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left := time.Duration(rapid.Int64Range(2, int64(24*time.Hour)).Draw(t, "left"))
		m := schema.Margin(left)
		if m <= 0 || m > left/2 {
			t.Fatalf("Margin(%v) = %v", left, m)
		}
		if rest := left - m; schema.Margin(rest) > m {
			t.Fatalf("the next hop keeps more: Margin(%v) > %v", rest, m)
		}
		if left >= 400*time.Millisecond && m != left/20 {
			t.Fatalf("Margin(%v) = %v, not 5 %%", left, m)
		}
	})
}

func TestDurationsAreWrittenForPeople(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`"1.5s"`: 1500 * time.Millisecond, `"0s"`: 0, `"2m0s"`: 2 * time.Minute, `"310µs"`: 310 * time.Microsecond,
	} {
		var d schema.Duration
		decode(t, []byte(text), &d)
		if got, err := schema.Marshal(d); d.Std() != want || err != nil || string(got) != text {
			t.Errorf("%s reads as %v and is written %s, %v", text, d, got, err)
		}
	}
	for _, text := range []string{`"5"`, `"soon"`, `""`, `5`, `"1.5 s"`, `{}`} {
		var d schema.Duration
		if err := schema.Unmarshal([]byte(text), &d); err == nil {
			t.Errorf("%s reads as the duration %v", text, d)
		}
	}
	var d schema.Duration
	if err := d.UnmarshalText([]byte("soon")); err == nil || !strings.Contains(err.Error(), `write one such as "1.5s"`) {
		t.Errorf("no advice in %v", err)
	}
}

func TestAGlanceReadsMembersBeforeTheFault(t *testing.T) {
	for _, c := range []struct{ data, want string }{
		{`{"hook_type":"PreToolUse","agent_id":"a","tool_name":"Bash","tool_input":{"x":1,`, "PreToolUse a  Bash"},
		{`{"agent_id":"a","tool_input":{"x":1,"x":2},"session_id":"s"}`, "a s"},
		{`{"agent_id":7,"hook_type":"Lunch","tool_name":"T"}`, "T"},
		{``, ""}, {`[]`, ""}, {`{`, ""}, {`junk`, ""},
	} {
		e := schema.Glance([]byte(c.data))
		if got := strings.Fields(strings.Join([]string{string(e.HookType), e.AgentID, e.SessionID, e.ToolName}, " ")); strings.Join(got, " ") != strings.Join(strings.Fields(c.want), " ") {
			t.Errorf("%s: %q, want %q", c.data, got, c.want)
		}
	}
}

// TestARuntimesTimeoutCoversTheHooks checks that the margins of the shim, the client, the
// aggregator and the worker leave a hook its full timeout.
func TestARuntimesTimeoutCoversTheHooks(t *testing.T) {
	for _, hook := range []time.Duration{time.Second, 48 * time.Second, 10 * time.Minute, time.Hour} {
		left := schema.RuntimeFor(hook)
		for range 4 {
			left -= schema.Margin(left)
		}
		if left < hook || left > hook+hook/20 {
			t.Errorf("of a timeout of %s, %s is left", hook, left)
		}
	}
}
