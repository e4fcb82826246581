package command

import (
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// messageEvent returns the event of a model's message.
func messageEvent(text string) *schema.Event {
	e := runnertest.Event("")
	e.HookType, e.ToolInput, e.Message = schema.AfterLLMCall, nil, jsontext.Value(`"`+text+`"`)
	return e
}

func TestEffectsAndValuesOfProgramsChain(t *testing.T) {
	adds := func(letter string) schema.Hook {
		return shellHook(`m=$(sed 's/.*"message":"\([a-z]*\)".*/\1/'); echo '{"value":"'${m}` + letter + `'","effects":[{"set_flag":{"` + letter + `":"'$m'"}}]}'`)
	}
	r := New(Options{})
	defer r.Close()
	v := runnertest.Judge(t, r, testdata(t), messageEvent("a"), adds("b"), adds("c"), adds("d"))
	var effects []string
	for _, e := range v.Effects {
		effects = append(effects, string(e))
	}
	want := []string{`{"set_flag":{"b":"a"}}`, `{"set_flag":{"c":"ab"}}`, `{"set_flag":{"d":"abc"}}`}
	if diff := cmp.Diff(want, effects); diff != "" || string(v.Value) != `"abcd"` || len(v.HookErrors) > 0 {
		t.Errorf("the value is %s, errors %q, the effects (-want +got):\n%s", v.Value, v.HookErrors, diff)
	}
}

func TestFailuresOfProgramsUnderBothPolicies(t *testing.T) {
	r := New(Options{})
	defer r.Close()
	const whole = `echo '{"value":"new","effects":[{"set_flag":{"a":1}}]}'`
	for name, c := range map[string]struct {
		script       string
		effects      int
		value        string
		open, closed schema.Decision
		errors       []string
	}{
		"both are fine":                        {script: whole, effects: 1, value: `"new"`},
		"an invalid effect":                    {script: `echo '{"value":"new","effects":["x",{"set_flag":{"a":1}}]}'`, effects: 1, value: `"new"`, closed: schema.Fail, errors: []string{"an effect is a JSON object"}},
		"a value that is not a message":        {script: `echo '{"value":5,"effects":[{"set_flag":{"a":1}}]}'`, effects: 1, closed: schema.Fail, errors: []string{"value dropped"}},
		"a stop without its value":             {script: `echo '{"decision":"stop"}'`, closed: schema.Fail, errors: []string{"stop without its value"}},
		"a truncated answer":                   {script: `printf '{"value":"new","effects":[{'`, closed: schema.Fail, errors: []string{"not valid JSON"}},
		"an exit after they were messageEvent": {script: whole + `; exit 1`, closed: schema.Fail, errors: []string{"exited with code 1"}},
		"death after they were messageEvent":   {script: whole + `; kill -KILL $$`, closed: schema.Fail, errors: []string{"signal: killed"}},
		"a retry with both":                    {script: `echo '{"decision":"retry","value":"new","effects":[{"set_flag":{"a":1}}]}'`, effects: 1, open: schema.Retry, closed: schema.Retry},
	} {
		for failClosed, want := range map[bool]schema.Decision{false: c.open, true: c.closed} {
			t.Run(fmt.Sprintf("%s, fail_closed %v", name, failClosed), func(t *testing.T) {
				h := shellHook(c.script)
				h.FailClosed = failClosed
				v := runnertest.Judge(t, r, testdata(t), messageEvent("old"), h)
				value := c.value
				if want == schema.Fail {
					value = "" // a failed hook has no value
				}
				if v.Decision != want || len(v.Effects) != c.effects || string(v.Value) != value || !runnertest.Match(v.HookErrors, c.errors) {
					t.Errorf("%+v", v)
				}
			})
		}
	}
}
