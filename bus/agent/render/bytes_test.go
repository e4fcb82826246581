package render_test

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/schema"
)

// Any conversation becomes a request or an error. A request without native parts is valid
// for the API.
func FuzzRequestOf(f *testing.F) {
	for _, file := range archive(f, "conversations.txtar") {
		f.Add(file.Data)
	}
	f.Add([]byte(`{"messages":[{"role":"user","content":"go"},{"role":"assistant","tool_calls":[{"id":"a.b","name":"x","input":"{"},{"id":"a.b","name":"x","input":[]}]},
		{"role":"tool","tool_result":{"id":"a.b"}},{"role":"tool","tool_result":{"id":"a.b","output":null,"error":"e"}}],"tools":[{"name":"x","schema":{}}]}`))
	f.Fuzz(func(t *testing.T, conversation []byte) {
		for _, format := range render.Formats() {
			data, err := render.RequestOf(format, conversation)
			if err != nil {
				continue
			}
			var r render.Request
			if err := schema.Unmarshal(data, &r); err != nil {
				t.Fatalf("%s is not a request: %v", data, err)
			}
			if !strings.Contains(string(conversation), "native") && !strings.Contains(string(conversation), `\`) {
				if err := illegal(format, r); err != nil {
					t.Errorf("%s: %v", format, err)
				}
			}
		}
	})
}

// [render.RequestOf] accepts every message of [render.MessageOf].
func TestRequestOfAcceptsMessageOf(t *testing.T) {
	m, err := render.MessageOf(render.OpenAI, []byte(`{"choices":[{"message":{"role":"assistant","content":"built","reasoning_content":"hm"},"finish_reason":"stop"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := render.RequestOf(render.OpenAI, []byte(`{"messages":[{"role":"user","content":"go"},`+string(m)+`]}`))
	if err != nil || !jsontext.Value(r).IsValid() || !strings.Contains(string(r), `"reasoning_content":"hm"`) {
		t.Errorf("%s, %v", r, err)
	}
}
