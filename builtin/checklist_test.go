package builtin

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

// observer is the interface that the aggregator uses to find outputs that change the
// choice.
type observer interface {
	Observes(tool string) bool
	Observe(e *schema.Event, p *schema.Peers) bool
}

func watching(t testing.TB) observer {
	return stage[observer](t, schema.MidStreamInjection, map[string]any{
		"defer_peer_updates_until_restart": true, "allow_midstream_peer_updates_before_checklist_submit": true})
}

func TestOnlyChecklistsAreObservedAndOnlyIfTheOptionsNeedThem(t *testing.T) {
	o := watching(t)
	for tool, want := range map[string]bool{"submit_checklist": true, "mcp__checklist__submit_checklist": true, "server.submit_checklist": true,
		"propose_improvements": false, "resubmit_checklist": false, "Bash": false} {
		if o.Observes(tool) != want {
			t.Errorf("%s: %v", tool, !want)
		}
	}
	for _, options := range []map[string]any{nil, {"checklist_gated": true}, {"defer_peer_updates_until_restart": true}} {
		if stage[observer](t, schema.MidStreamInjection, options).Observes("submit_checklist") {
			t.Errorf("%v: it is observed without need", options)
		}
	}
}

func TestAcceptedChecklistsAreFoundInEveryFormOfOutput(t *testing.T) {
	for name, c := range map[string]struct {
		output string
		want   bool
	}{
		"an object":                        {`{"status":"accepted","verdict":"iterate"}`, true},
		"accepted is true":                 {`{"accepted":true}`, true},
		"JSON in a string":                 {`"{\"status\":\"accepted\"}"`, true},
		"MCP content, a list":              {`[{"type":"text","text":"{\"accepted\":true}"}]`, true},
		"MCP content in a result":          {`{"content":[{"type":"text","text":"{\"accepted\":true}"}]}`, true},
		"structured content":               {`{"content":[],"structuredContent":{"status":"accepted"}}`, true},
		"structured content with a result": {`{"structuredContent":{"result":{"status":"accepted"}}}`, true},
		"Gemini CLI":                       {`{"llmContent":[{"text":"<untrusted_context>\n{\"status\":\"accepted\"}\n</untrusted_context>"}],"returnDisplay":""}`, true},
		"Copilot CLI":                      {`{"resultType":"success","textResultForLlm":"{\"accepted\":true}"}`, true},
		"Cursor":                           {`"{\"output\":\"{\\\"accepted\\\":true}\"}"`, true},
		"OpenCode":                         {`{"title":"t","output":"{\"accepted\":true}","metadata":{}}`, true},
		"rejected":                         {`{"status":"rejected"}`, false},
		"not accepted":                     {`{"accepted":false}`, false},
		"contradicting members":            {`{"status":"accepted","accepted":false}`, false},
		"contradicting members, reversed":  {`{"status":"rejected","accepted":true}`, false},
		"another status":                   {`{"status":"stored","accepted":true}`, true},
		"a string that is not a boolean":   {`{"accepted":"true"}`, false},
		"a part of the submitted input":    {`{"status":"rejected","items":[{"accepted":true}],"input":"{\"accepted\":true}"}`, false},
		"a result that failed":             {`{"isError":true,"content":[{"type":"text","text":"{\"accepted\":true}"}]}`, false},
		"prose":                            {`"it was accepted"`, false},
		"nothing":                          {``, false},
		"null":                             {`null`, false},
		"no JSON":                          {`{`, false},
	} {
		t.Run(name, func(t *testing.T) {
			o := watching(t)
			e := &schema.Event{HookType: schema.PostToolUse, ToolName: "mcp__c__submit_checklist", ToolOutput: jsontext.Value(c.output)}
			p := schema.Peers{Answers: 2}
			want := schema.Peers{Answers: 2}
			if c.want {
				want.Checked = 3
			}
			if got := o.Observe(e, &p); got != c.want {
				t.Errorf("a change is reported: %v", got)
			}
			if diff := cmp.Diff(want, p); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if o.Observe(e, &p) {
				t.Error("a second one is reported as a change")
			}
		})
	}
}

func TestChecklistsAtOtherEventsDoNotCount(t *testing.T) {
	e := &schema.Event{HookType: schema.ToolError, ToolName: "submit_checklist", ToolOutput: jsontext.Value(`{"accepted":true}`)}
	var p schema.Peers
	if watching(t).Observe(e, &p) || p.Checked != 0 {
		t.Error("a tool that failed counts")
	}
}

func FuzzObserve(f *testing.F) {
	f.Add(`{"status":"accepted"}`)
	f.Add(`[{"type":"text","text":"{\"accepted\":true}"}]`)
	f.Add(`{"result":{"result":"[{\"text\":\"{}\"}]"},"isError":false}`)
	o := watching(f)
	f.Fuzz(func(t *testing.T, output string) {
		var p schema.Peers
		e := &schema.Event{HookType: schema.PostToolUse, ToolName: "submit_checklist", ToolOutput: jsontext.Value(output)}
		if o.Observe(e, &p) != (p.Checked == 1) {
			t.Errorf("the report differs from the change: %+v", p)
		}
		if p.Checked == 1 && !jsontext.Value(output).IsValid(jsontext.AllowInvalidUTF8(true)) {
			t.Error("invalid JSON was accepted")
		}
	})
}
