package schema_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

// A message that is not understood must not look like an empty message.
func TestAMessageOfAnotherShapeStaysNative(t *testing.T) {
	for _, v := range []string{
		`{"content":[{"type":"text","text":"x"}]}`, `{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}`, `{"content":null,"refusal":"no"}`,
		`{"content":"x","tool_calls":[{"id":"c"}]}`, `{"content":"x","tool_calls":[{"id":"c","function":{"name":"","arguments":"{}"}}]}`,
	} {
		m, err := schema.ReadMessage(jsontext.Value(v))
		if diff := cmp.Diff(schema.Message{Role: schema.RoleAssistant, Native: jsontext.Value(v)}, m); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", v, err, diff)
		}
	}
}

func TestAnEmptyMessageIsAMessage(t *testing.T) {
	for _, v := range []string{`""`, `{}`, `{"role":"assistant"}`, `{"content":""}`, `{"content":"","refusal":null}`, `{"content":null,"tool_calls":[]}`} {
		m, err := schema.ReadMessage(jsontext.Value(v))
		if m.Content != "" || len(m.ToolCalls) > 0 || m.Native != nil || err != nil {
			t.Errorf("%s: %+v, %v", v, m, err)
		}
	}
}

func TestCallsOfChatCompletionsAreRead(t *testing.T) {
	for arguments, input := range map[string]string{
		`"{\"q\":1}"`: `{"q":1}`, `" "`: `{}`, `"{\"q\":"`: `"{\"q\":"`, `"[1]"`: `"[1]"`, `{"q":1}`: `{"q":1}`, `"{\"q\":1,\"q\":2}"`: `"{\"q\":1,\"q\":2}"`,
	} {
		v := jsontext.Value(`{"content":"x","tool_calls":[{"id":"c","type":"function","function":{"name":"search","arguments":` + arguments + `}}]}`)
		want := schema.Message{
			Role: schema.RoleAssistant, Content: "x", Native: v,
			ToolCalls: []schema.ToolCall{{ID: "c", Name: "search", Input: jsontext.Value(input)}},
		}
		m, err := schema.ReadMessage(v)
		if diff := cmp.Diff(want, m); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", arguments, err, diff)
		}
	}
}
