package loop_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/schema"
)

// How do I help the model when a tool fails, and refuse calls that it must not make?
func Example_howDoIGuardAndHelpTools() {
	type query struct {
		SQL string `json:"sql" description:"one statement"`
	}
	database := loop.ToolFunc("query", "Asks the database.", func(_ context.Context, q query) ([]string, error) {
		if !strings.Contains(q.SQL, "users") {
			return nil, errors.New("database: no such table")
		}
		return []string{"Ada"}, nil
	})
	statements := []string{"drop table users", "select * from people", "select * from users"}
	model := loop.ModelFunc(func(_ context.Context, r *loop.Request) (schema.Message, error) {
		if last := r.Messages[len(r.Messages)-1]; last.Result != nil && last.Result.Error == "" {
			return schema.AssistantText("It is " + string(last.Result.Output)), nil
		}
		input, err := schema.Marshal(query{statements[r.Iteration-1]})
		return schema.Message{ToolCalls: []schema.ToolCall{{ID: fmt.Sprint(r.Iteration), Name: "query", Input: jsontext.Value(input)}}}, err
	})
	l, err := loop.New(loop.Options{Agent: "agent1", Model: model, Tools: []loop.Tool{database}})
	if err != nil {
		fmt.Println(err)
		return
	}
	l.On(schema.PreToolUse).When(func(_ context.Context, s *loop.Status) (bool, error) {
		return strings.Contains(string(s.ToolCall.Input), "drop"), nil
	}).Handle(schema.Deny, loop.WithReason("this agent only reads"))
	l.On(schema.ToolError).When(func(_ context.Context, s *loop.Status) (bool, error) {
		return strings.Contains(s.Error, "database"), nil
	}).Handle(schema.Continue, loop.WithEffects(loop.Append(schema.RoleSystem, "Tables: users (id, name)")))
	answer, err := l.Run(context.Background(), "Who is there?")
	for _, m := range l.History() {
		if m.Result != nil {
			fmt.Println(m.Result.Error)
		} else if m.Role == schema.RoleSystem {
			fmt.Println(m.Content)
		}
	}
	fmt.Println(answer.Content, err)
	// Output:
	// The call was denied and did not run: this agent only reads
	// database: no such table
	// Tables: users (id, name)
	//
	// It is ["Ada"] <nil>
}
