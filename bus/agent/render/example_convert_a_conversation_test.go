package render_test

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/schema"
)

// How do I send one conversation to the APIs of several vendors?
func Example_howDoIConvertAConversation() {
	conversation := []schema.Message{
		{Role: schema.RoleSystem, Content: "You add numbers."},
		{Role: schema.RoleUser, Content: "What is 1+2?"},
		{Role: schema.RoleAssistant, ToolCalls: []schema.ToolCall{{ID: "c1", Name: "add", Input: jsontext.Value(`{"a":1,"b":2}`)}}},
		{Role: schema.RoleTool, Result: &schema.ToolOutcome{ID: "c1", Name: "add", Output: jsontext.Value(`3`)}},
	}
	for _, f := range []render.Format{render.OpenAI, render.Anthropic} {
		r, err := render.Conversation(f, conversation, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, m := range r.Messages {
			fmt.Println(f, string(m))
		}
	}
	// Output:
	// openai {"role":"system","content":"You add numbers."}
	// openai {"role":"user","content":"What is 1+2?"}
	// openai {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":1,\"b\":2}"}}]}
	// openai {"role":"tool","tool_call_id":"c1","content":"3"}
	// anthropic {"role":"user","content":[{"type":"text","text":"What is 1+2?"}]}
	// anthropic {"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"add","input":{"a":1,"b":2}}]}
	// anthropic {"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"3"}]}
}
