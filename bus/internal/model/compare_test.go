package model_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/internal/model"
	"github.com/hookfabric/hookfabric/schema"
)

func expected() model.Expectation {
	answers := script{
		"a": {Injections: []schema.Injection{{Content: "x"}}, HookErrors: []string{"odd"}, Effects: []jsontext.Value{raw(`{"set_flag":{"e":1}}`)}},
		"b": {Decision: schema.Ask, Reason: "sure?", UpdatedInput: raw(`{"b":1,"a":2}`)},
	}
	return model.Judge(config(pre("a"), pre("b")), bash(), answers.ask, model.Options{})
}

func TestDiffNamesWhatIsDifferent(t *testing.T) {
	for what, change := range map[string]func(*schema.Verdict){
		"decision":            func(v *schema.Verdict) { v.Decision = schema.Allow },
		"reason":              func(v *schema.Verdict) { v.Reason = "" },
		"auto_approve":        func(v *schema.Verdict) { v.AutoApprove = true },
		"updated_input":       func(v *schema.Verdict) { v.UpdatedInput = nil },
		"updated_output":      func(v *schema.Verdict) { v.UpdatedOutput = raw(`null`) },
		"value":               func(v *schema.Verdict) { v.Value = raw(`{`) },
		"effects":             func(v *schema.Verdict) { v.Effects = nil },
		"injections":          func(v *schema.Verdict) { v.Injections = nil },
		"executed_hooks":      func(v *schema.Verdict) { v.ExecutedHooks = v.ExecutedHooks[:1] },
		"hook_errors by hook": func(v *schema.Verdict) { v.HookErrors = nil },
		"config_version":      func(v *schema.Verdict) { v.ConfigVersion = 9 },
	} {
		x := expected()
		got := x.Verdict
		change(&got)
		if d := x.Diff(got); len(d) != 1 || !strings.HasPrefix(d[0], what+":") {
			t.Errorf("%s: %q", what, d)
		}
	}
}

func TestDiffForgivesWhatIsOnlyWordedOtherwise(t *testing.T) {
	x := expected()
	got := x.Verdict
	got.UpdatedInput = raw(`{ "a": 2, "b": 1 }`)
	got.HookErrors = []string{`hook "a": in other words`, "something about the call"}
	got.ExecutedHooks = []schema.ExecutedHook{{Hook: "a", Decision: schema.Continue, Worker: "w", Duration: 5}, got.ExecutedHooks[1]}
	if d := x.Diff(got); len(d) != 0 {
		t.Errorf("%q", d)
	}
	failed := func(schema.Hook, schema.Event) model.Answer { return model.Answer{Kind: schema.Lost} }
	closed := pre("a")
	closed.FailClosed = true
	x = model.Judge(config(closed), bash(), failed, model.Options{})
	got = x.Verdict
	got.Reason = "the worker is gone"
	if d := x.Diff(got); len(d) != 0 {
		t.Errorf("%q", d)
	}
	got.Reason = ""
	if d := x.Diff(got); len(d) != 1 {
		t.Errorf("a deny without a reason passes: %q", d)
	}
}

func TestDiffCallsNamesWhoShouldHaveRun(t *testing.T) {
	x := model.Judge(config(reader("a"), reader("b"), reader("c"), pre("d")), bash(), script{"b": schema.Denied("no")}.ask, model.Options{})
	call := func(name string) model.Call { return model.Call{Hook: name, Input: bash()} }
	other := call("b")
	other.Input.ToolInput = raw(`{"n":9}`)
	for _, c := range []struct {
		sentence  string
		got       []model.Call
		unreached []string
		want      string
	}{
		{"in order", []model.Call{call("a"), call("b")}, nil, ""},
		{"beside, in any order, more than once", []model.Call{call("c"), call("b"), call("a"), call("a")}, nil, ""},
		{"never reached", []model.Call{call("b")}, []string{"a"}, ""},
		{"missing", []model.Call{call("b")}, nil, `hook "a" should have run`},
		{"too many", []model.Call{call("a"), call("b"), call("d")}, nil, `hook "d" ran and should not`},
		{"shown something else", []model.Call{call("a"), other}, nil, "what hook b saw"},
	} {
		d := strings.Join(x.DiffCalls(c.got, c.unreached...), "; ")
		if (d == "") != (c.want == "") || !strings.HasPrefix(d, c.want) {
			t.Errorf("%s: %q, want %q", c.sentence, d, c.want)
		}
	}
}
