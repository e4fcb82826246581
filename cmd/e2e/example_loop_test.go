package e2e_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/agent/llm"
	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/e2e/clients/model"
	"github.com/hookfabric/hookfabric/schema"
)

// bus/agent/README.md shows this configuration and the function below it, as they are here.
const librarianHooks = `
hooks:
  PreToolUse:
    - {name: public-only, matcher: read_file, type: builtin, handler: deny, when: 'tool_call.input.path.startsWith("private/")',
       options: {reason: private files stay private}}
`

// newLibrarian is an agent with a hook of its own beside those of the fabric. keyFile
// may be empty where an API wants no key.
func newLibrarian(fabric *client.Client, url, keyFile string) (*loop.Loop, error) {
	model, err := llm.New(llm.Options{Format: render.Anthropic, URL: url, Model: "claude-opus-5", KeyFile: keyFile})
	if err != nil {
		return nil, err
	}
	type file struct {
		Path string `json:"path" description:"where it is"`
	}
	read := loop.ToolFunc("read_file", "Reads a file.", func(_ context.Context, f file) (string, error) {
		return "what stands in " + f.Path, nil
	})
	l, err := loop.New(loop.Options{Agent: "librarian", Model: loop.LLM(model), Tools: []loop.Tool{read}, Fabric: fabric})
	if err != nil {
		return nil, err
	}
	l.On(schema.BeforeFinalResponse).When(func(_ context.Context, s *loop.Status) (bool, error) {
		return !strings.Contains(s.AssistantMessage.Content, "<answer>"), nil
	}).Handle(schema.Retry,
		loop.WithReason("the answer has no tags"),
		loop.WithEffects(loop.Append(schema.RoleSystem, "Write the answer in <answer> tags.")))
	return l, nil
}

// An agent whose hooks are in two places: its own program, and the fabric.
func Example_agentLoop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	url, stop := startExampleBroker(ctx, librarianHooks)
	defer stop()
	fabric, err := client.Connect(ctx, client.Options{URL: url})
	if err != nil {
		log.Fatal(err)
	}
	defer fabric.Close()

	// The model requests two files, and then answers in the format that a hook asked for.
	api := model.StartFunc(func(r model.Request) model.Turn {
		switch {
		case r.Turn == 0:
			return model.Turn{Calls: []model.Call{
				{Tool: "read_file", Input: map[string]any{"path": "private/diary"}}, {Tool: "read_file", Input: map[string]any{"path": "index"}},
			}}
		case r.Saw("<answer> tags"):
			return model.Turn{Text: "<answer>two files, one of them private</answer>"}
		}
		return model.Turn{Text: "two files, one of them private"}
	})
	defer api.Close()

	l, err := newLibrarian(fabric, api.URL, "")
	if err != nil {
		log.Fatal(err)
	}
	answer, err := l.Run(ctx, "What can I read?")
	for _, m := range l.History() {
		if m.Result != nil {
			fmt.Println(strings.TrimSpace(string(m.Result.Output) + m.Result.Error))
		}
	}
	fmt.Println(answer.Status, answer.Content, answer.Iterations, err)
	// Output:
	// The call was denied and did not run: private files stay private
	// "what stands in index"
	// answered <answer>two files, one of them private</answer> 3 <nil>
}
