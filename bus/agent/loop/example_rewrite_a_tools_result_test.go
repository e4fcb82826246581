package loop_test

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/redact"
)

// How do I change a tool's result before the model reads it?
func Example_howDoIRewriteAToolsResult() {
	env := loop.ToolFunc("env", "Prints the environment.", func(context.Context, struct{}) (map[string]string, error) {
		return map[string]string{"HOME": "/root", "DB_PASSWORD": "correct horse"}, nil
	})
	model := loop.ModelFunc(func(_ context.Context, r *loop.Request) (schema.Message, error) {
		if last := r.Messages[len(r.Messages)-1]; last.Result != nil {
			return schema.AssistantText(string(last.Result.Output)), nil
		}
		return schema.Message{ToolCalls: []schema.ToolCall{{ID: "1", Name: "env", Input: jsontext.Value(`{}`)}}}, nil
	})
	l, err := loop.New(loop.Options{Agent: "agent1", Model: model, Tools: []loop.Tool{env}})
	if err != nil {
		fmt.Println(err)
		return
	}
	l.On(schema.PostToolUse).Handle(schema.Continue, loop.WithValueFunc(
		func(_ context.Context, _ *loop.Status, result schema.ToolOutcome) (schema.ToolOutcome, error) {
			result.Output = redact.Value(result.Output)
			return result, nil
		}))
	answer, err := l.Run(context.Background(), "Where are you?")
	fmt.Println(answer.Content, err)
	// Output:
	// {"DB_PASSWORD":"[removed]","HOME":"/root"} <nil>
}
