package loop_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

func TestMain(m *testing.M) { bustest.Main(m) }

// script is a model that answers with one message after the other.
type script struct {
	turns []schema.Message
	// asked are the requests.
	asked []*loop.Request
}

func (s *script) Call(_ context.Context, r *loop.Request) (schema.Message, error) {
	s.asked = append(s.asked, r)
	if len(s.turns) < len(s.asked) {
		return schema.Message{}, fmt.Errorf("the script has no turn %d", len(s.asked))
	}
	return s.turns[len(s.asked)-1], nil
}

func says(text string) schema.Message { return schema.AssistantText(text) }

// calls is a message with tool calls: pairs of name and input.
func calls(pairs ...string) schema.Message {
	m := schema.Message{Role: schema.RoleAssistant}
	for i := 0; i+1 < len(pairs); i += 2 {
		m.ToolCalls = append(m.ToolCalls, schema.ToolCall{ID: fmt.Sprintf("c%d", i/2+1), Name: pairs[i], Input: jsontext.Value(pairs[i+1])})
	}
	return m
}

type sum struct {
	A int `json:"a" description:"the first"`
	B int `json:"b"`
}

type jsonValue = jsontext.Value

func adding() loop.Tool {
	return loop.ToolFunc("add", "Adds.", func(_ context.Context, s sum) (int, error) { return s.A + s.B, nil })
}

func failing() loop.Tool {
	return loop.ToolFunc("fail", "Fails.", func(context.Context, map[string]any) (any, error) { return nil, errors.New("database is gone") })
}

func start(t *testing.T, o loop.Options) *loop.Loop {
	t.Helper()
	o.Agent = "agent1"
	if o.Logger == nil {
		o.Logger = quiet()
	}
	l, err := loop.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// talk formats a conversation, one line per message.
func talk(messages []schema.Message) (lines []string) {
	for _, m := range messages {
		line := m.Role + ": " + m.Content
		for _, c := range m.ToolCalls {
			line += fmt.Sprintf("[%s %s %s]", c.ID, c.Name, c.Input)
		}
		if r := m.Result; r != nil {
			line += fmt.Sprintf("%s %s %s%s%q", r.ID, r.Name, string(r.Output), r.Error, r.Notes)
		}
		lines = append(lines, line)
	}
	return lines
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestAModelCallsToolsAndAnswers(t *testing.T) {
	model := &script{turns: []schema.Message{calls("add", `{"a":1,"b":2}`, "fail", `{}`), says("three")}}
	l := start(t, loop.Options{Model: model, Tools: []loop.Tool{adding(), failing()}, System: "You add."})
	answer, err := l.Run(t.Context(), "1+2?")
	if err != nil {
		t.Fatal(err)
	}
	message := says("three")
	same(t, "response", loop.Response{Content: "three", Message: &message, Status: loop.Answered, Iterations: 2}, answer)
	same(t, "conversation", []string{
		"system: You add.", "user: 1+2?", `assistant: [c1 add {"a":1,"b":2}][c2 fail {}]`,
		"tool: c1 add 3[]", "tool: c2 fail database is gone[]", "assistant: three",
	}, talk(l.History()))
	same(t, "what the model was asked last", talk(l.History()[:5]), talk(model.asked[1].Messages))
}

// A loop copies its tools, and each model request has a copy.
func TestALoopCopiesItsTools(t *testing.T) {
	tools := []loop.Tool{adding()}
	turns := []schema.Message{calls("add", `{"a":1,"b":2}`), says("done")}
	l := start(t, loop.Options{Tools: tools, Model: loop.ModelFunc(func(_ context.Context, r *loop.Request) (schema.Message, error) {
		if r.Tools[0].Name != "add" || r.Tools[0].Schema.Kind() != '{' {
			t.Errorf("the model may ask for %+v", r.Tools)
		}
		r.Tools[0].Name, r.Tools[0].Schema[0], r.Tools[0].Call = "spoiled", 'x', nil
		return turns[r.Iteration-1], nil
	})})
	tools[0].Name, tools[0].Schema[0], tools[0].Call = "spoiled", 'x', nil
	if _, err := l.Run(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	same(t, "result", "tool: c1 add 3[]", talk(l.History())[2])
}

func TestTheModelReadsTheReasonOfARetry(t *testing.T) {
	model := &script{turns: []schema.Message{says("3"), says("<answer>3</answer>")}}
	l := start(t, loop.Options{Model: model})
	l.On(schema.BeforeFinalResponse).When(func(_ context.Context, s *loop.Status) (bool, error) {
		return s.AssistantMessage.Content == "3", nil
	}).Handle(schema.Retry, loop.WithReason("there are no tags"), loop.WithEffects(loop.Append(schema.RoleSystem, "Use <answer> tags.")))
	answer, err := l.Run(t.Context(), "1+2?")
	if err != nil || answer.Content != "<answer>3</answer>" {
		t.Fatalf("%+v, %v", answer, err)
	}
	same(t, "what the model was asked", []string{
		"user: 1+2?", "assistant: 3", "system: Use <answer> tags.", "user: there are no tags (attempt 2 of 15)",
	}, talk(model.asked[1].Messages))
}
