package loop_test

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/schema"
)

// How do I ask a person before a tool runs?
func Example_howDoIAskAPerson() {
	deploy := loop.ToolFunc("deploy", "Deploys the service.", func(context.Context, struct{}) (string, error) { return "deployed", nil })
	model := loop.ModelFunc(func(_ context.Context, r *loop.Request) (schema.Message, error) {
		if last := r.Messages[len(r.Messages)-1]; last.Result != nil {
			return schema.AssistantText(last.Result.Error + string(last.Result.Output)), nil
		}
		return schema.Message{ToolCalls: []schema.ToolCall{{ID: "1", Name: "deploy", Input: jsontext.Value(`{}`)}}}, nil
	})
	l, err := loop.New(loop.Options{
		Agent: "agent1", Model: model, Tools: []loop.Tool{deploy},
		Approve: func(_ context.Context, c schema.ToolCall, reason string) (bool, error) {
			fmt.Printf("May the agent call %s? %s\n", c.Name, reason)
			return false, nil // the person refuses
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	l.On(schema.PreToolUse).Handle(schema.Ask, loop.WithReason("It is Friday."))
	answer, err := l.Run(context.Background(), "Deploy it.")
	fmt.Println(answer.Content, err)
	// Output:
	// May the agent call deploy? It is Friday.
	// The call did not run, since no person approved it: It is Friday. <nil>
}
