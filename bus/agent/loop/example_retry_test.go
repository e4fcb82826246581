package loop_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/schema"
)

// How do I have the model try again until its answer has the form that I need?
func Example_howDoIValidateTheAnswer() {
	attempts := []string{"3", "<answer>3</answer>"}
	model := loop.ModelFunc(func(_ context.Context, r *loop.Request) (schema.Message, error) {
		for _, m := range r.Messages[1:] {
			fmt.Printf("%d. %s: %s\n", r.Iteration, m.Role, m.Content)
		}
		return schema.AssistantText(attempts[r.Iteration-1]), nil
	})
	l, err := loop.New(loop.Options{Agent: "agent1", Model: model})
	if err != nil {
		fmt.Println(err)
		return
	}
	l.On(schema.BeforeFinalResponse).When(func(_ context.Context, s *loop.Status) (bool, error) {
		return !strings.Contains(s.AssistantMessage.Content, "<answer>"), nil
	}).Handle(schema.Retry, loop.WithReason("the tags are missing"), loop.WithEffects(loop.Append(schema.RoleSystem, "Use <answer> tags.")))
	answer, err := l.Run(context.Background(), "What is 1+2?")
	fmt.Println(answer.Content, err)
	// Output:
	// 2. assistant: 3
	// 2. system: Use <answer> tags.
	// 2. user: the tags are missing (attempt 2 of 15)
	// <answer>3</answer> <nil>
}
