package python

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// whole returns an event with every field.
func whole() *schema.Event {
	e := runnertest.Event("Write")
	e.Runtime, e.ToolKind, e.ToolUseID, e.HistoryRef = "claude", "file.write", "use-1", "history-1"
	e.Timestamp = time.Date(2026, 11, 21, 10, 0, 0, 123456789, time.FixedZone("", 3600))
	e.ToolInput, e.ToolOutput = jsontext.Value(`{"path":"ä"}`), jsontext.Value(`["out"]`)
	e.ToolArgs = jsontext.Value(`{"paths":["ä"]}`)
	e.Error, e.Message, e.Prompt, e.Response = "error", jsontext.Value(`{"text":"m"}`), "prompt", jsontext.Value(`"r"`)
	e.Iteration, e.Labels, e.Native = 3, map[string]string{"team": "a"}, `{"raw":1}`
	return e
}

func TestAFunctionReadsAllFieldsOfItsEvent(t *testing.T) { //nolint:tparallel // its cases take turns on the hosts of one runner
	t.Parallel()
	r := newRunner(t, Options{})
	bare := &schema.Event{HookType: schema.PreToolUse}
	full := whole()
	asJSON := func(v any) string {
		b, err := schema.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const fields = `"error":"error","event_id":"01980000-0000-7000-8000-000000000001","history_ref":"history-1","hook_type":"PreToolUse",` +
		`"iteration":3,"labels":{"team":"a"},"message":{"text":"m"},"native":"{\"raw\":1}","orchestrator_id":"orchestrator-1","prompt":"prompt",` +
		`"response":"r","runtime":"claude","session_id":"session-1","timestamp":`
	const tool = `,"tool_args":{"paths":["ä"]},"tool_input":{"path":"ä"},"tool_kind":"file.write","tool_name":"Write","tool_output":["out"],"tool_use_id":"use-1"}`
	for name, c := range map[string]struct {
		handler string
		event   *schema.Event
		want    string
	}{
		"every field is an attribute": {"attributes", full, `{"agent_id":"agent-1","cwd":"/home/dev/project",` + fields +
			`"datetime.datetime(2026, 11, 21, 10, 0, 0, 123456, tzinfo=datetime.timezone(datetime.timedelta(seconds=3600)))"` + tool},
		"a missing field becomes None, or empty": {"attributes", bare, `{"agent_id":null,"cwd":null,"error":null,"event_id":"","history_ref":null,` +
			`"hook_type":"PreToolUse","iteration":0,"labels":{},"message":null,"native":null,"orchestrator_id":"","prompt":null,"response":null,` +
			`"runtime":null,"session_id":"","timestamp":"None","tool_args":null,"tool_input":{},"tool_kind":null,"tool_name":"","tool_output":null,"tool_use_id":null}`},
		"an event is a mapping": {"mapping", full, `{"agent_id":"agent-1","cwd":"/home/dev/project",` + fields + `"2026-11-21T10:00:00.123456789+01:00"` + tool},
		"a mapping has MassGen's fields always": {"mapping", bare, `{"agent_id":null,"hook_type":"PreToolUse","orchestrator_id":"","session_id":"",` +
			`"timestamp":null,"tool_input":{},"tool_name":"","tool_output":null}`},
		"events can be made for tests": {"made_by_hand", bare, `{"tool":"Write"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := handle(t, load(t, r, hookOf("shapes."+c.handler), schema.PythonHosts{}), c.event)
			if err != nil {
				t.Fatal(err)
			}
			var fields any
			if err := schema.Unmarshal(got.UpdatedInput, &fields); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, asJSON(fields)); diff != "" {
				t.Errorf("it sees (-want +got):\n%s", diff)
			}
		})
	}
}

func TestADeeplyNestedEventDoesNotAffectOtherCalls(t *testing.T) {
	t.Parallel()
	deep := runnertest.Event("Bash")
	deep.ToolInput = nested(5000)
	h := load(t, newRunner(t, Options{}), hookOf("forms.nothing"), schema.PythonHosts{})
	if _, err := handle(t, h, deep); err != nil && !strings.Contains(err.Error(), "raised RecursionError") {
		t.Errorf("error %v", err)
	}
	if _, err := handle(t, h, runnertest.Event("Bash")); err != nil {
		t.Error(err)
	}
}

func TestEveryEventReachesAHook(t *testing.T) {
	dir := runnertest.Tree(t, map[string]string{"policy.py": `
def check(event):
    return {"decision": "deny", "reason": "seen", "updated_input": event.tool_input}
`})
	h := loadFrom(t, newRunner(t, Options{}), "policy.check", dir)
	digits := strings.Repeat("9", 4300)
	for name, input := range map[string]jsontext.Value{
		"one that nests as deep as answers may":     nested(schema.MaxDepth - 2),
		"one with the longest integer Python reads": jsontext.Value(`{"n":-` + digits[1:] + `}`),
	} {
		t.Run(name, func(t *testing.T) {
			e := runnertest.Event("Bash")
			e.ToolInput = input
			got, err := handle(t, h, e)
			if err != nil || got.Decision != schema.Deny || string(got.UpdatedInput) != string(input) {
				t.Errorf("answer %+.200v, error %v", got, err)
			}
		})
	}
	t.Run("one with an integer that Python does not read", func(t *testing.T) {
		dir := runnertest.Tree(t, map[string]string{"policy.py": "def check(event): return {'reason': type(event.tool_input['n']).__name__}\n"})
		e := runnertest.Event("Bash")
		e.ToolInput = jsontext.Value(`{"n":` + digits + `9}`)
		got, err := handle(t, loadFrom(t, newRunner(t, Options{}), "policy.check", dir), e)
		if err != nil || got.Reason != "float" {
			t.Errorf("it sees a number of the type %q, error %v", got.Reason, err)
		}
	})
}

func nested(levels int) jsontext.Value {
	b := []byte(`{"x":`)
	for range levels {
		b = append(b, '[')
	}
	for range levels {
		b = append(b, ']')
	}
	return append(b, '}')
}

func TestTheLargestEventIsComplete(t *testing.T) {
	t.Parallel()
	e := runnertest.Event("Bash")
	text := strings.Repeat("x", schema.MaxEvent-1024)
	e.ToolInput = jsontext.Value(`{"command":"` + text + `"}`)
	dir := runnertest.Tree(t, map[string]string{"size.py": "def check(event): return {'reason': str(len(event.tool_input['command']))}\n"})
	h := loadFrom(t, newRunner(t, Options{}), "size.check", dir)
	res, err := handle(t, h, e)
	if err != nil || res.Reason != strconv.Itoa(len(text)) {
		t.Errorf("it has seen %s of %d bytes, error %v", res.Reason, len(text), err)
	}
	e.ToolInput = jsontext.Value(`{"command":"` + text + text + `"}`)
	if _, err := handle(t, h, e); err == nil || !strings.Contains(err.Error(), "a hook gets at most") {
		t.Errorf("error %v", err)
	}
}

func TestAFunctionFindsItsPlaceInATrace(t *testing.T) {
	h := load(t, newRunner(t, Options{}), hookOf("shapes.place"), schema.PythonHosts{})
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	for name, c := range map[string]struct {
		at   *trace.Context
		want string
	}{
		"one with a state": {trace.Parse(parent, `vendor="1"`), parent + ` vendor="1"`},
		"one without":      {trace.Parse(parent, ""), parent + " None"},
		"none":             {nil, "None None"},
	} {
		res, err := h.Handle(trace.With(t.Context(), c.at), whole())
		if err != nil || res.Reason != c.want {
			t.Errorf("%s: the function is at %q, %v; not at %q", name, res.Reason, err, c.want)
		}
	}
}
