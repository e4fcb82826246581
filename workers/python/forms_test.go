package python

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// newRunner returns a runner that ends with its test.
func newRunner(t testing.TB, opt Options) *Runner {
	t.Helper()
	needPython(t)
	r := New(opt)
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func load(t testing.TB, r *Runner, h schema.Hook, hosts schema.PythonHosts) workers.Handler {
	t.Helper()
	handler, err := r.Load(h, workers.Site{Dirs: testdata(t), Python: hosts})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// handle calls a hook that must answer before its deadline.
func handle(t testing.TB, h workers.Handler, e *schema.Event) (schema.Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runnertest.Patience)
	defer cancel()
	res, err := h.Handle(ctx, e)
	if ctx.Err() != nil {
		t.Fatalf("only its deadline ended it: %v", err)
	}
	return res, err
}

// reason calls a hook and returns the reason of its answer.
func reason(t testing.TB, h workers.Handler) string {
	t.Helper()
	res, err := handle(t, h, runnertest.Event("Bash"))
	if err != nil {
		t.Fatal(err)
	}
	return res.Reason
}

func TestAnswersOfFunctions(t *testing.T) {
	r := newRunner(t, Options{})
	for handler, c := range map[string]struct {
		says  string
		event schema.EventType
		want  schema.Result
	}{
		"nothing":       {says: "None is no opinion"},
		"empty":         {says: "an empty dict is no opinion"},
		"canonical":     {says: "a dict is read as JSON is", want: schema.Denied("no")},
		"massgen_dict":  {says: "MassGen's form is understood", want: schema.Denied("no")},
		"claude":        {says: "Claude Code's form is understood", want: schema.Asked("sure?")},
		"asks":          {says: "a HookResult is an answer", want: schema.Asked("sure?")},
		"disallows":     {says: "allowed=False is a deny with any decision", want: schema.Denied("no")},
		"finds_nothing": {says: "allowed=None is a deny", want: schema.Denied("no")},
		"finds":         {says: "what counts as true is allowed", want: schema.Allowed()},
		"modifies":      {says: "modified_args beats updated_input", want: schema.Result{Decision: schema.Allow, UpdatedInput: jsontext.Value(`{"command":"new"}`)}},
		"injects":       {says: "a HookResult injects", event: schema.PostToolUse, want: schema.Injected("look", schema.ToolResult)},
		"stops":         {says: "a HookResult can say what only other events know", event: schema.BeforeLLMCall, want: schema.Result{Decision: schema.Stop, Value: jsontext.Value(`"over"`), Injections: []schema.Injection{{Content: "bye", Strategy: schema.UserMessage}}}},
		"foreign":       {says: "an object with the fields of a result is one", want: schema.Denied("foreign")},
		"described":     {says: "an object that describes itself as a dict is one", want: schema.Denied("described")},
		"later":         {says: "a coroutine function is awaited", want: schema.Denied("later")},
		"policy":        {says: "an object with an async __call__ is awaited", want: schema.Denied("an object")},
		"policy.method": {says: "a method of an object is a function", want: schema.Denied("of an object")},
		"Policy.static": {says: "a static method of a class is a function", want: schema.Denied("static")},
		"partial":       {says: "a partial is a function", want: schema.Denied("partial")},
		"later_partial": {says: "a partial of a coroutine function is awaited", want: schema.Denied("later partial")},
		"wrapped":       {says: "a function that returns a coroutine has it awaited", want: schema.Denied("later")},
		"own_loop":      {says: "a function may run an event loop of its own", want: schema.Denied("later")},
	} {
		for mode, hook := range map[string]schema.Hook{"alone": hookOf("forms." + handler), "shared": sharing("forms." + handler)} {
			t.Run(c.says+", "+mode, func(t *testing.T) {
				e := runnertest.Event("Bash")
				if c.event != "" {
					e.HookType = c.event
				}
				got, err := handle(t, load(t, r, hook, schema.PythonHosts{}), e)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("the answer differs (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestAnInvalidAnswerIsAnErrorOfItsCallOnly(t *testing.T) { //nolint:tparallel // its cases take turns on the hosts of one runner
	t.Parallel()
	r := newRunner(t, Options{})
	good := load(t, r, hookOf("forms.canonical"), schema.PythonHosts{})
	for handler, c := range map[string]struct{ says, want string }{
		"text":               {"a string is no answer", "answered with a value of the type str; return a HookResult, a dict or None"},
		"true":               {"a boolean is no answer", "of the type bool"},
		"listed":             {"a list is no answer", "of the type list"},
		"returns_event":      {"the event is no answer", "of the type HookEvent"},
		"a_set":              {"a set is not JSON", "not JSON: Object of type set is not JSON serializable"},
		"a_nan":              {"NaN is not JSON", "not JSON: Out of range float values"},
		"some_bytes":         {"bytes are not JSON", "not JSON: Object of type bytes"},
		"allows_with_a_date": {"what is not JSON takes an allow with it", "not JSON: Object of type date"},
		"circular":           {"what holds itself is not JSON", "not JSON: Circular reference"},
		"twice":              {"two names that JSON cannot tell apart are an error", `"1"`},
		"raises":             {"an exception is reported", "raised ValueError: the tool Bash is odd"},
		"raises_later":       {"an exception of a coroutine is reported", "raised ValueError: later"},
		"exits":              {"sys.exit is an exception", "raised SystemExit: 3"},
		"exits_later":        {"sys.exit in a coroutine is an exception", "raised SystemExit: 3"},
		"interrupted":        {"KeyboardInterrupt is an exception", "raised KeyboardInterrupt"},
		"unspeakable":        {"an exception without words is one", "raised Unspeakable"},
		"recurses":           {"too deep a recursion is an exception", "raised RecursionError"},
		"vanishes":           {"the end of a process is reported without its output, which may be about another agent", "exited with code 7"},
		"crashes":            {"a crash is reported with its signal", "ended by a signal (signal: segmentation fault"},
	} {
		for mode, hook := range map[string]schema.Hook{"alone": hookOf("forms." + handler), "shared": sharing("forms." + handler)} {
			t.Run(c.says+", "+mode, func(t *testing.T) {
				got, err := handle(t, load(t, r, hook, schema.PythonHosts{}), runnertest.Event("Bash"))
				if err == nil {
					t.Fatalf("it answered %+v", got)
				}
				if text := err.Error(); !strings.Contains(text, c.want) || !strings.HasPrefix(text, `"forms.`+handler+`" `) {
					t.Errorf("the error is %q, want %q in it", text, c.want)
				}
				if strings.Contains(err.Error(), "the last words") {
					t.Errorf("the error contains the output: %v", err)
				}
				if got := reason(t, good); got != "no" {
					t.Errorf("another hook then answered %q", got)
				}
			})
		}
	}
}

func TestARefusalStandsWithInvalidParts(t *testing.T) {
	r := newRunner(t, Options{})
	const notJSON = "answered with something that is not JSON: Object of type %s is not JSON serializable"
	for handler, c := range map[string]struct{ says, reason, error string }{
		"denies_with_a_date":       {"a HookResult denies", "no", fmt.Sprintf(notJSON, "date")},
		"disallows_with_a_set":     {"a dict does not allow", "no", fmt.Sprintf(notJSON, "set")},
		"blocks_at_length":         {"a dict blocks", "no", "answered with 1048624 bytes; an answer has at most 1048576"},
		"claude_denies_with_bytes": {"Claude Code's form denies", "", fmt.Sprintf(notJSON, "bytes")},
	} {
		t.Run(c.says, func(t *testing.T) {
			want := schema.Result{Decision: schema.Deny, Reason: c.reason, HookErrors: []string{c.error}}
			got, err := handle(t, load(t, r, hookOf("forms."+handler), schema.PythonHosts{}), runnertest.Event("Bash"))
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("error %v; the answer differs (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestAnUnknownDecisionDoesNotAllow(t *testing.T) {
	got, err := handle(t, load(t, newRunner(t, Options{}), hookOf("forms.unknown_decision"), schema.PythonHosts{}), runnertest.Event("Bash"))
	if err != nil || got.Decision != "DENY" {
		t.Errorf("answer %+v, error %v; the fold must see the word as it is, to refuse it", got, err)
	}
}
