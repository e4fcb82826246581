package python

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// full returns v without empty members, which the other side omits.
func full(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		if list, ok := v.([]any); ok {
			for i := range list {
				list[i] = full(list[i])
			}
		}
		return v
	}
	for name, member := range m {
		if full(member); member == nil || member == 0.0 || member == "" {
			delete(m, name)
		}
	}
	return m
}

func TestAHookReadsTheStatusOfConditions(t *testing.T) {
	h := load(t, newRunner(t, Options{}), hookOf("loop.status"), oneHost())
	for _, message := range []string{
		``, `"hello"`, `""`, `null`, `5`, `["x"]`, `{}`, `{"content":"hi"}`, `{"role":"user","content":"hi"}`, `{"content":null,"role":null}`,
		`{"content":"","tool_calls":[{"id":"c1","name":"search","input":{"q":"x"}},{"name":"other"}]}`,
		`{"content":[{"type":"text","text":"hi"}],"role":"assistant"}`, `{"content":"x","tool_calls":{"a":1}}`, `{"content":"x","tool_calls":["a"]}`,
		`{"content":"x","tool_calls":[{"name":5}]}`, `{"content":"x","native":{"signature":"s"}}`, `{"content":"x","tool_calls":[]}`,
		`{"role":"tool","content":"","tool_result":{"id":"c1","name":"search","output":[1],"error":"e","notes":["n"]}}`,
		`{"candidates":[{"content":{"parts":[{"text":"hi"}]}}]}`, `{"content":null,"refusal":"no"}`, `{"content":"","refusal":null}`, `{"x":1,"native":null}`,
		`{"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"search","arguments":"{\"q\":\"x\"}"}},{"id":"c2","function":{"name":"now","arguments":""}}]}`,
		`{"content":"x","tool_calls":[{"id":"c1","function":{"name":"search","arguments":"{\"q\":"}}]}`, `{"content":"x","tool_calls":[{"id":"c1","function":{"name":"search","arguments":"{\"q\":1,\"q\":2}"}}]}`,
		`{"content":"x","tool_calls":[{"id":"c1"}]}`, `{"content":"x","tool_calls":[null]}`, `{"content":"x","tool_calls":[{"id":"c1","function":{"name":"","arguments":"{}"}}]}`,
		`{"content":"x","tool_result":{"notes":[1]}}`, `{"content":"x","tool_result":"y"}`,
	} {
		for _, kind := range schema.EventTypes() {
			e := whole()
			e.HookType, e.Message, e.Error = kind, nil, "error"
			if message != "" {
				e.Message = jsontext.Value(message)
			}
			status := e.LoopStatus()
			status.Error = "" // an attribute has the event's own
			want, err := schema.Marshal(&status)
			if err != nil {
				t.Fatal(err)
			}
			var seen struct {
				Status  any `json:"status"`
				Flags   any `json:"flags"`
				History any `json:"history"`
			}
			res, err := handle(t, h, e)
			if err == nil {
				err = schema.Unmarshal(res.UpdatedInput, &seen)
			}
			if err != nil {
				t.Fatal(err)
			}
			var wanted any
			if err := schema.Unmarshal(want, &wanted); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(full(wanted), full(seen.Status)); diff != "" {
				t.Errorf("%s with the message %s (-want +got):\n%s", kind, message, diff)
			}
			if diff := cmp.Diff(map[string]any{}, seen.Flags); diff != "" || seen.History != nil {
				t.Errorf("flags %v, history %v", seen.Flags, seen.History)
			}
		}
	}
}

func TestStatusFieldsAreAttributes(t *testing.T) {
	e := runnertest.Event("")
	e.HookType = schema.BeforeFinalResponse
	e.Message = jsontext.Value(`{"content":"hi","tool_calls":[{"id":"c1","name":"search","input":{"q":"x"}}]}`)
	e.History = jsontext.Value(`[{"role":"user","content":"go"},{"role":"tool","content":"","tool_result":{"name":"t","output":3}}]`)
	got, err := handle(t, load(t, newRunner(t, Options{}), hookOf("loop.reached"), oneHost()), e)
	want := `["assistant", "hi", "c1", "search", "x", null, "user", "go", 3, true, ` +
		`"a Message has no 'contents'; it has role, content, tool_calls, tool_result, native", "a ToolCall has no 'args'; it has id, name, input"]`
	if diff := cmp.Diff(want, got.Reason); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}

func TestShortAnswers(t *testing.T) {
	r := newRunner(t, silent())
	effects := func(all ...string) (out []jsontext.Value) {
		for _, e := range all {
			out = append(out, jsontext.Value(e))
		}
		return out
	}
	history := jsontext.Value(`[{"role":"user","content":"the question"}]`)
	for handler, c := range map[string]struct {
		event schema.EventType
		want  schema.Verdict
	}{
		"retries": {schema.AfterLLMCall, schema.Verdict{Decision: schema.Retry, Reason: "once more",
			Effects: effects(`{"append_message":{"role":"system","content":"Use tags."}}`, `{"set_flag":{"tries":1,"old":null}}`)}},
		"fails":    {schema.BeforeLLMCall, schema.Verdict{Decision: schema.Fail, Reason: "no"}},
		"stops":    {schema.BeforeLLMCall, schema.Verdict{Decision: schema.Stop, Value: jsontext.Value(`{"role":"assistant","content":"from the cache"}`)}},
		"drops":    {schema.BeforeLLMCall, schema.Verdict{Effects: effects(`{"drop_messages":{"first":2,"role":"tool"}}`, `{"drop_messages":{"last":1,"containing":"x"}}`)}},
		"guides":   {schema.BeforeFinalResponse, schema.Verdict{Decision: schema.Retry, Reason: "no tags", Effects: effects(`{"append_message":{"role":"system","content":"Use tags."}}`, `{"set_flag":{"seen":3}}`)}},
		"cached":   {schema.BeforeLLMCall, schema.Verdict{Decision: schema.Stop, Value: jsontext.Value(`{"role":"assistant","content":"cached: the question"}`)}},
		"direct":   {schema.BeforeLLMCall, schema.Verdict{Decision: schema.Stop, Value: jsontext.Value(`"direct"`)}},
		"several":  {schema.QueryEnd, schema.Verdict{Effects: effects(`{"set_flag":{"a":1}}`, `{"set_flag":{"b":2}}`)}},
		"upper":    {schema.AfterLLMCall, schema.Verdict{Value: jsontext.Value(`{"role":"assistant","content":"HELLO"}`)}},
		"exclaims": {schema.BeforeFinalResponse, schema.Verdict{Value: jsontext.Value(`{"role":"assistant","content":"hello!"}`)}},
	} {
		t.Run(handler, func(t *testing.T) {
			e := runnertest.Event("")
			e.HookType, e.Message, e.History, e.Iteration, e.ToolInput = c.event, jsontext.Value(`"hello"`), history, 3, nil
			h := hookOf("loop." + handler)
			h.Needs = []string{schema.NeedHistory}
			got := judged(t, r, e, h)
			got.ExecutedHooks = nil
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the verdict differs (-want +got):\n%s", diff)
			}
		})
	}
	if got := reason(t, load(t, r, hookOf("loop.refused"), oneHost())); got != "ValueError TypeError TypeError TypeError TypeError TypeError AttributeError" {
		t.Errorf("what is wrong with a hook: %s", got)
	}
}

func TestRejectKeepsItsReason(t *testing.T) {
	r := newRunner(t, silent())
	for _, handler := range []string{"rejects", "rejected"} {
		e := runnertest.Event("")
		e.HookType = schema.BeforeLLMCall
		if v := judged(t, r, e, hookOf("loop."+handler)); v.Decision != schema.Fail || v.Reason == "" || len(v.HookErrors) > 0 {
			t.Errorf("%s: %+v", handler, v)
		}
	}
}

func TestPartsOfAHookRunInOrderAndValuesChain(t *testing.T) {
	r := newRunner(t, silent())
	once := `["condition","first","second","third","value"]`
	twice := strings.TrimSuffix(once, "]") + "," + once[1:]
	for _, handler := range []string{"ordered", "ordered_sync", "ordered_later"} {
		for mode, h := range map[string]schema.Hook{"alone": hookOf("loop." + handler), "shared": sharing("loop." + handler)} {
			t.Run(handler+", "+mode, func(t *testing.T) {
				v := judged(t, r, runnertest.Event("Bash"), h, h)
				if diff := cmp.Diff(`{"order":`+twice+`,"n":2}`, string(v.UpdatedInput)); diff != "" {
					t.Errorf("it became (-want +got):\n%s%v", diff, v.HookErrors)
				}
			})
		}
	}
	t.Run("messages", func(t *testing.T) {
		e := runnertest.Event("")
		e.HookType, e.Message = schema.BeforeFinalResponse, jsontext.Value(`"hello"`)
		v := judged(t, r, e, hookOf("loop.exclaims"), hookOf("loop.upper"), hookOf("loop.exclaims"))
		if want := `{"role":"assistant","content":"HELLO!!"}`; string(v.Value) != want {
			t.Errorf("it became %s: %v", v.Value, v.HookErrors)
		}
	})
}

func TestValuesOfToolsHaveTheTypeOfTheirEvent(t *testing.T) {
	r := newRunner(t, silent())
	for name, c := range map[string]struct {
		handler string
		event   schema.EventType
		tool    string
		want    schema.Verdict
	}{
		"a result is enriched":                {"enriched", schema.PostToolUse, "fetch_data", schema.Verdict{UpdatedOutput: jsontext.Value(`{"items":[1,2],"count":2}`)}},
		"that of a tool that failed, too":     {"enriched", schema.ToolError, "fetch_data", schema.Verdict{UpdatedOutput: jsontext.Value(`{"items":[1,2],"count":2}`)}},
		"an unchanged value is not a rewrite": {"enriched", schema.PostToolUse, "other", schema.Verdict{}},
		"a stop before a tool is a result":    {"tool_stop", schema.PreToolUse, "other", schema.Verdict{Decision: schema.Stop, Value: jsontext.Value(`{"cached":true}`)}},
		"so is a stop after it":               {"tool_stop", schema.PostToolUse, "other", schema.Verdict{Decision: schema.Stop, Value: jsontext.Value(`{"cached":true}`)}},
		"a call keeps its tool": {"renames", schema.PreToolUse, "mine", schema.Verdict{HookErrors: []string{
			`hook "h1": "loop.renames" raised ValueError: the value is a call of 'other'; a hook may change the input of a call, but not its tool`}}},
		"None is no value": {"returns_nothing", schema.PostToolUse, "t", schema.Verdict{HookErrors: []string{
			`hook "h1": "loop.returns_nothing" raised TypeError: the value function returned None at PostToolUse; return the new value, or the current one to keep it`}}},
		"None without a value to change": {"returns_nothing", schema.BeforeLLMCall, "", schema.Verdict{}},
		"nor is it that of a stop": {"stops_nothing", schema.BeforeLLMCall, "", schema.Verdict{HookErrors: []string{
			`hook "h1": "loop.stops_nothing" raised TypeError: a stop at BeforeLLMCall has the value None; return the value that the agent continues with`}}},
		"a text is no effect": {"no_effect", schema.PostToolUse, "t", schema.Verdict{HookErrors: []string{
			`hook "h1": "loop.no_effect" raised TypeError: an effect is of the type str; return a dict such as append_message(...) makes, a list of them, or None`}}},
	} {
		t.Run(name, func(t *testing.T) {
			e := runnertest.Event(c.tool)
			e.HookType, e.ToolOutput = c.event, jsontext.Value(`{"items":[1,2]}`)
			got := judged(t, r, e, hookOf("loop."+c.handler))
			got.ExecutedHooks = nil
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("the verdict differs (-want +got):\n%s", diff)
			}
		})
	}
}
