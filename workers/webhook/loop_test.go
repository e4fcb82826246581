package webhook

import (
	"fmt"
	"io"
	"net/http"
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

// adds returns a hook whose server adds a letter to the message and records the old
// message.
func adds(t *testing.T, letter string) schema.Hook {
	return hookOf(serve(t, func(w http.ResponseWriter, r *http.Request) {
		var e schema.Event
		var text string
		body, err := io.ReadAll(r.Body)
		if err != nil || schema.Unmarshal(body, &e) != nil || schema.Unmarshal(e.Message, &text) != nil {
			http.Error(w, "no message", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"value":"%s%s","effects":[{"set_flag":{"%s":"%s"}}]}`, text, letter, letter, text)
	}))
}

func TestEffectsAndValuesOfServersChain(t *testing.T) {
	r := quiet()
	defer r.Close()
	v := runnertest.Judge(t, r, nil, messageEvent("a"), adds(t, "b"), adds(t, "c"))
	var effects []string
	for _, e := range v.Effects {
		effects = append(effects, string(e))
	}
	want := []string{`{"set_flag":{"b":"a"}}`, `{"set_flag":{"c":"ab"}}`}
	if diff := cmp.Diff(want, effects); diff != "" || string(v.Value) != `"abc"` || len(v.HookErrors) > 0 {
		t.Errorf("the value is %s, errors %q, the effects (-want +got):\n%s", v.Value, v.HookErrors, diff)
	}
}

func TestFailuresOfServersUnderBothPolicies(t *testing.T) {
	r := quiet()
	defer r.Close()
	const whole = `{"value":"new","effects":[{"set_flag":{"a":1}}]}`
	json := typed("application/json")
	for name, c := range map[string]struct {
		answer       http.HandlerFunc
		effects      int
		value        string
		open, closed schema.Decision
		errors       []string
	}{
		"both are fine":                 {answer: respond(200, json, whole), effects: 1, value: `"new"`},
		"an invalid effect":             {answer: respond(200, json, `{"value":"new","effects":[5]}`), value: `"new"`, closed: schema.Fail, errors: []string{"an effect is a JSON object"}},
		"a value that is not a message": {answer: respond(200, json, `{"value":[],"effects":[{"set_flag":{"a":1}}]}`), effects: 1, closed: schema.Fail, errors: []string{"value dropped"}},
		"a stop without its value":      {answer: respond(200, json, `{"decision":"stop"}`), closed: schema.Fail, errors: []string{"stop without its value"}},
		"an error status":               {answer: respond(500, json, whole), closed: schema.Fail, errors: []string{"500"}},
		"a server that hangs up":        {answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, closed: schema.Fail, errors: []string{"EOF"}},
	} {
		url := serve(t, c.answer)
		for failClosed, want := range map[bool]schema.Decision{false: c.open, true: c.closed} {
			t.Run(fmt.Sprintf("%s, fail_closed %v", name, failClosed), func(t *testing.T) {
				h := hookOf(url)
				h.FailClosed = failClosed
				v := runnertest.Judge(t, r, nil, messageEvent("old"), h)
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
