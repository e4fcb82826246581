package loop_test

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/schema"
)

// How do I run an agent with a tool and a hook?
func Example_howDoIRunAnAgent() {
	type numbers struct {
		A int `json:"a"`
		B int `json:"b"`
	}
	add := loop.ToolFunc("add", "Adds two numbers.", func(_ context.Context, n numbers) (int, error) { return n.A + n.B, nil })

	// A stand-in for a model: it calls the tool, then returns the result. A real one is
	// loop.LLM(client).
	model := loop.ModelFunc(func(_ context.Context, r *loop.Request) (schema.Message, error) {
		if last := r.Messages[len(r.Messages)-1]; last.Result != nil {
			return schema.AssistantText("It is " + string(last.Result.Output) + "."), nil
		}
		return schema.Message{ToolCalls: []schema.ToolCall{{ID: "1", Name: "add", Input: jsontext.Value(`{"a":1,"b":2}`)}}}, nil
	})

	l, err := loop.New(loop.Options{Agent: "agent1", Model: model, Tools: []loop.Tool{add}})
	if err != nil {
		fmt.Println(err)
		return
	}
	l.On(schema.PreToolUse).Handle(schema.Continue, loop.WithEffects(loop.EffectFunc(func(_ context.Context, s *loop.Status) error {
		fmt.Println("calls", s.ToolCall.Name, string(s.ToolCall.Input))
		return nil
	})))
	answer, err := l.Run(context.Background(), "What is 1+2?")
	fmt.Println(answer.Content, err)
	// Output:
	// calls add {"a":1,"b":2}
	// It is 3. <nil>
}
