package hooksyaml_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

func TestPresets(t *testing.T) {
	for text, want := range map[string][]string{"hooks: {}": {"delivery"}, "presets: []": {}, "presets: [delivery]": {"delivery"}} {
		doc := read(t, text)
		c := doc.Config
		if d := cmp.Diff(want, c.Presets); d != "" {
			t.Errorf("%s (-want +got):\n%s", text, d)
		}
		c.Hooks = wrote(doc)
		if d := cmp.Diff(presetsOf(&c), doc.Config.Hooks, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s (-want +got):\n%s", text, d)
		}
	}
}

// places lists the hooks of an event as name=handler, with those of presets in brackets.
func places(c *schema.Config, t schema.EventType) string {
	var out []string
	for _, h := range c.Hooks {
		switch {
		case h.Event != t:
		case h.Preset != "":
			out = append(out, "["+h.Name+"]")
		default:
			out = append(out, h.Name+"="+h.Handler)
		}
	}
	return strings.Join(out, " ")
}

func TestAUsersHookReplacesAPresets(t *testing.T) {
	const rest = "[subagent_complete] [background_tool_complete] [round_timeout_post]"
	for _, c := range []struct{ sentence, text, want string }{
		{"as an entry of its own, in its place", "hooks: {PostToolUse: [{handler: ./a.sh}, {type: builtin, handler: human_input, matcher: Bash}]}",
			"[mid_stream_injection] [high_priority_task_reminder] " + rest + " a=./a.sh human_input=human_input"},
		{"of those that workers run, too", "hooks: {PostToolUse: [{type: builtin, handler: high_priority_task_reminder}]}",
			"[mid_stream_injection] [human_input] " + rest + " high_priority_task_reminder=high_priority_task_reminder"},
		{"not for another event", "hooks: {ToolError: [{type: builtin, handler: human_input}]}",
			"[mid_stream_injection] [high_priority_task_reminder] [human_input-2] " + rest},
		{"an agent's stands behind, and takes its name along", "agents: [{id: a, hooks: {PostToolUse: [{type: builtin, handler: human_input}]}}]",
			"[mid_stream_injection] [high_priority_task_reminder] [human_input-2] " + rest + " human_input=human_input"},
		{"a name that was given is not taken from its hook", "hooks: {PostToolUse: [{name: human_input, handler: ./a.sh}]}",
			"[mid_stream_injection] [high_priority_task_reminder] [human_input-2] " + rest + " human_input=./a.sh"},
		{"what only has the name is something else", "hooks: {PostToolUse: [{type: command, handler: human_input}]}",
			"[mid_stream_injection] [high_priority_task_reminder] [human_input-2] " + rest + " human_input=human_input"},
	} {
		t.Run(c.sentence, func(t *testing.T) {
			doc := read(t, c.text)
			if d := cmp.Diff(c.want, places(&doc.Config, schema.PostToolUse)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			readsBack(t, &doc.Config)
			before := doc.Config
			if hooksyaml.AddPresets(&doc.Config); cmp.Diff(before, doc.Config) != "" {
				t.Errorf("it becomes another one when presets are added again: %s", cmp.Diff(before, doc.Config))
			}
		})
	}
}

func TestSettingsAtPostToolUseApplyAtToolError(t *testing.T) {
	doc := read(t, "hooks: {PostToolUse: [{type: builtin, handler: human_input, matcher: Write, options: {a: 1}}], ToolError: [{type: builtin, handler: mid_stream_injection}]}")
	settings := map[string]string{}
	for _, h := range doc.Config.Hooks {
		if h.Event == schema.ToolError {
			settings[h.Handler] = fmt.Sprintf("%s %v %s", h.Matcher, h.Options, h.Preset)
		}
	}
	want := map[string]string{
		"human_input": "Write map[a:1] delivery", "mid_stream_injection": " map[] ", "subagent_complete": " map[] delivery",
		"background_tool_complete": " map[] delivery", "round_timeout_post": " map[] delivery",
	}
	if d := cmp.Diff(want, settings); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	readsBack(t, &doc.Config)
}

func TestTheEndOfATurnHasTheOptionsOfPostToolUseAndNoMatcher(t *testing.T) {
	doc := read(t, `hooks:
  PostToolUse: [{type: builtin, handler: human_input, matcher: Write, options: {at_end: wait}}]
  BeforeFinalResponse: [{type: builtin, handler: subagent_complete, options: {at_end: tell}}]
`)
	want := "[mid_stream_injection-3] [human_input-3] [background_tool_complete-3] [round_timeout_post-3] subagent_complete=subagent_complete"
	if d := cmp.Diff(want, places(&doc.Config, schema.BeforeFinalResponse)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, h := range doc.Config.Hooks {
		if h.Event == schema.BeforeFinalResponse && h.Handler == schema.HumanInput && (h.Matcher != "" || h.Options["at_end"] != "wait") {
			t.Errorf("%+v", h)
		}
	}
	readsBack(t, &doc.Config)
}

// A stage may have fields that repeat their defaults.
func TestStagesMayRepeatDefaults(t *testing.T) {
	const text = `{hooks: {PreToolUse: [{type: builtin, handler: round_timeout_pre, fail_closed: true, timeout: 30, pool: default, readonly: true, idempotent: true,
  mode: enforce, when: "", needs: [], max_concurrent: 0, auto_approve: false, matcher: "Write|Edit", options: {terminal: [done]}}]}}`
	doc := read(t, text)
	want := schema.Hook{Name: "round_timeout_pre", Event: schema.PreToolUse, Type: schema.Builtin, Handler: "round_timeout_pre", Timeout: schema.DefaultTimeout,
		FailClosed: true, Readonly: true, Idempotent: true, Matcher: "Write|Edit", Options: map[string]any{"terminal": []any{"done"}}}
	if d := cmp.Diff(want, wrote(doc)[0]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	readsBack(t, &doc.Config)
}
