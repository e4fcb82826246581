package e2e_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/agent/llm"
	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/e2e/clients/model"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

const loopDir = deployDir + "/loop"

// What the hooks of the examples say.
const (
	exampleFormat = "Format your answer with <answer>...</answer> tags."
	exampleSchema = "Tables: users (id, name), orders (id, user_id, total)"
	examplePrice  = "Stock price: $101.5"
	cachedQuery   = "What is NATS?"
	cachedAnswer  = "<answer>A message bus.</answer>"
)

// A loopExample is an agent with one hook, which is the same in every language and
// wherever it runs.
type loopExample struct {
	agent  string
	format render.Format
	query  string
	// model answers by what it sees: without its hook, the agent gets another answer.
	model func(r model.Request) model.Turn
	// hook registers the example's hook in this process.
	hook func(l *loop.Loop)
	want string
	// requests is how many the model must have got, and seen what the last of them
	// must have had; if there are several, the first had it not.
	requests int
	seen     string
	// more tells examples of the same agent apart.
	more string
}

func loopExamples() []loopExample {
	answer := func(text string) model.Turn { return model.Turn{Text: "<answer>" + text + "</answer>"} }
	calls := func(tool, input string) model.Turn {
		return model.Turn{Calls: []model.Call{{Tool: tool, Input: input}}}
	}
	return []loopExample{
		{agent: "validating", format: render.Anthropic, query: "What is 6 times 7?", model: func(r model.Request) model.Turn {
			if r.Saw(exampleFormat) {
				return answer("42")
			}
			return model.Turn{Text: "42"}
		}, hook: validated, want: "<answer>42</answer>", requests: 2, seen: exampleFormat},
		{agent: "robust", format: render.OpenAI, query: "How many users are there?", model: func(r model.Request) model.Turn {
			switch {
			case r.Saw("2 rows"):
				return answer("2 users")
			case r.Saw(exampleSchema):
				return calls("query_db", `{"sql":"SELECT * FROM users"}`)
			case r.Saw("database error"):
				return answer("the tables are unknown")
			}
			return calls("query_db", `{"sql":"SELECT * FROM user"}`)
		}, hook: recovered, want: "<answer>2 users</answer>", requests: 3, seen: exampleSchema},
		{agent: "contextual", format: render.Gemini, query: "What does it cost?", model: func(r model.Request) model.Turn {
			if r.Saw(examplePrice) {
				return answer("$101.5")
			}
			return answer("no idea")
		}, hook: informed, want: "<answer>$101.5</answer>", requests: 1, seen: examplePrice},
		{agent: "cached", format: render.Anthropic, query: cachedQuery, model: func(model.Request) model.Turn {
			return answer("a model said so")
		}, hook: remembered, want: cachedAnswer},
		{agent: "cached", format: render.OpenAI, query: "What is a bus?", model: func(model.Request) model.Turn {
			return answer("a model said so")
		}, hook: remembered, want: "<answer>a model said so</answer>", requests: 1, seen: "What is a bus?", more: "of what it does not know"},
		{agent: "enriching", format: render.Grok, query: "What can I read?", model: func(r model.Request) model.Turn {
			switch {
			case r.Saw("warehouse"):
				return answer("3 items in the warehouse")
			case r.Turn == 0:
				return calls("fetch_data", `{}`)
			}
			return answer("some items")
		}, hook: enriched, want: "<answer>3 items in the warehouse</answer>", requests: 2, seen: "warehouse"},
	}
}

// The hooks in Go, in the agent's process.

func validated(l *loop.Loop) {
	l.On(schema.BeforeFinalResponse).When(func(_ context.Context, s *loop.Status) (bool, error) {
		return !strings.Contains(s.AssistantMessage.Content, "<answer>"), nil
	}).Handle(schema.Retry, loop.WithEffects(loop.Append(schema.RoleSystem, exampleFormat)))
}

func recovered(l *loop.Loop) {
	l.On(schema.ToolError).When(func(_ context.Context, s *loop.Status) (bool, error) {
		return strings.Contains(s.Error, "database"), nil
	}).Handle(schema.Continue, loop.WithEffects(loop.Append(schema.RoleSystem, "Database schema:\n"+exampleSchema)))
}

func informed(l *loop.Loop) {
	l.On(schema.BeforeLLMCall).Handle(schema.Continue, loop.WithEffects(loop.Append(schema.RoleSystem, examplePrice)))
}

func remembered(l *loop.Loop) {
	l.On(schema.BeforeLLMCall).When(func(_ context.Context, s *loop.Status) (bool, error) {
		history := s.History()
		return history[len(history)-1].Content == cachedQuery, nil
	}).Handle(schema.Stop, loop.WithValue(schema.AssistantText(cachedAnswer)))
}

func enriched(l *loop.Loop) {
	l.On(schema.PostToolUse).Handle(schema.Continue, loop.WithValueFunc(
		func(_ context.Context, _ *loop.Status, o schema.ToolOutcome) (schema.ToolOutcome, error) {
			var err error
			if o.Name == "fetch_data" {
				o.Output, err = withCount(o.Output)
			}
			return o, err
		}))
}

// withCount says how much of a result there is.
func withCount(output jsontext.Value) (jsontext.Value, error) {
	var data map[string]any
	if err := schema.Unmarshal(output, &data); err != nil {
		return nil, err
	}
	items, _ := data["items"].([]any)
	data["source"], data["count"] = "warehouse", len(items)
	return schema.Marshal(data)
}

// exampleHandlers are the hooks in Go, as a worker of one's own serves them.
func exampleHandlers() map[string]workers.Handler {
	says := func(r schema.Result) workers.Handler {
		return workers.HandlerFunc(func(context.Context, *schema.Event) (schema.Result, error) { return r, nil })
	}
	effect := func(text string) []jsontext.Value {
		data, _ := schema.Marshal(schema.Effect{AppendMessage: &schema.AppendMessage{Content: text}})
		return []jsontext.Value{data}
	}
	return map[string]workers.Handler{
		"handlers.demand_tags": says(schema.Result{Decision: schema.Retry, Reason: "the answer has no tags", Effects: effect(exampleFormat)}),
		"handlers.show_schema": says(schema.Result{Effects: effect("Database schema:\n" + exampleSchema)}),
		"handlers.tell_price":  says(schema.Result{Effects: effect(examplePrice)}),
		"handlers.from_cache": workers.HandlerFunc(func(_ context.Context, e *schema.Event) (schema.Result, error) {
			var history []schema.Message
			if err := schema.Unmarshal(e.History, &history); err != nil || len(history) == 0 {
				return schema.Result{}, errors.Join(errors.New("there is no conversation"), err)
			}
			if history[len(history)-1].Content != cachedQuery {
				return schema.Result{}, nil
			}
			value, err := schema.Marshal(schema.AssistantText(cachedAnswer))
			return schema.Result{Decision: schema.Stop, Value: value}, err
		}),
		"handlers.enrich": workers.HandlerFunc(func(_ context.Context, e *schema.Event) (schema.Result, error) {
			output, err := withCount(e.ToolOutput)
			return schema.Result{Value: output}, err
		}),
	}
}

// An exampleFabric runs the examples' hooks, on workers of Go or of Python.
type exampleFabric struct {
	t     *testing.T
	url   string
	state string   // of the daemon
	env   []string // of agents in Python, and of their daemon
}

// loopFabric starts a broker, whose hooks the checkout's file has. In Go the same
// file names handlers of a worker of one's own.
func loopFabric(t *testing.T, inGo bool) *exampleFabric {
	t.Helper()
	dir, err := filepath.Abs(loopDir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "hooks.yaml")
	if inGo {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		file = write(t, t.TempDir(), "hooks.yaml", strings.ReplaceAll(string(text), "type: python,", "type: builtin, pool: examples,"))
	}
	f := fabricAt(t, startBroker(t, "--config", file).url)
	if inGo {
		f.serve()
	}
	return f
}

// fabricAt is a fabric whose agents in Python ask a daemon of their own.
func fabricAt(t *testing.T, url string) *exampleFabric {
	f := &exampleFabric{t: t, url: url, state: t.TempDir()}
	f.env = []string{"HOOKFABRIC_NATS=" + f.url, "HOOKFABRIC_STATE=" + f.state, "HOOKFABRIC_SOCKET=" + filepath.Join(f.state, "d", "s")}
	return f
}

// serve serves the handlers in Go until the test ends.
func (f *exampleFabric) serve() {
	nc, err := bus.Connect(f.t.Context(), bus.Options{URL: f.url, Name: workers.ConnectionPrefix + "examples"})
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- workers.Serve(ctx, nc, "examples", exampleHandlers()) }()
	f.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
		nc.Close()
	})
	awaitWorkers(f.t, connect(f.t, f.url), "examples")
}

// play runs an agent against a model of its own, and looks at what that received.
func (x *loopExample) play(t *testing.T, run func(url string) (string, error)) {
	t.Helper()
	m := model.StartFunc(x.model)
	defer m.Close()
	got, err := run(m.URL)
	if err != nil || got != x.want {
		t.Errorf("%s answered %q, %v; want %q", x.agent, got, err, x.want)
	}
	requests := m.Requests()
	if len(requests) != x.requests {
		t.Fatalf("the model was asked %d times, want %d", len(requests), x.requests)
	}
	if x.requests == 0 {
		return
	}
	if last := requests[len(requests)-1]; !last.Saw(x.seen) || !last.Saw(x.query) {
		t.Errorf("the model never saw %q behind the query:\n%s", x.seen, last.Texts())
	}
	if len(requests) > 1 && requests[0].Saw(x.seen) {
		t.Errorf("the model saw %q before there was a reason to say it:\n%s", x.seen, requests[0].Texts())
	}
	if odd := m.Odd(); len(odd) > 0 {
		t.Errorf("the model was asked what it does not know: %q", odd)
	}
}

// inGo runs the example's agent in this process.
func (x *loopExample) inGo(t *testing.T, url string, fabric *client.Client) (string, error) {
	t.Helper()
	c, err := llm.New(llm.Options{Format: x.format, URL: url, Model: "scripted", Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	l, err := loop.New(loop.Options{Agent: x.agent, Model: loop.LLM(c), System: "You are helpful.", Fabric: fabric, Tools: []loop.Tool{
		loop.ToolFunc("query_db", "Ask the database.", func(_ context.Context, in struct {
			SQL string `json:"sql"`
		}) (string, error) {
			if !strings.Contains(in.SQL, "FROM users") {
				return "", errors.New("database error: no such table")
			}
			return "2 rows", nil
		}),
		loop.ToolFunc("fetch_data", "Return all items.", func(context.Context, struct{}) (map[string]any, error) {
			return map[string]any{"items": []string{"a", "b", "c"}}, nil
		}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if fabric == nil {
		x.hook(l)
	}
	r, err := l.Run(t.Context(), x.query)
	if len(r.HookErrors) > 0 {
		t.Errorf("hooks went wrong: %q", r.HookErrors)
	}
	return r.Content, err
}

// inPython runs the example's agent in a process of its own.
func (x *loopExample) inPython(t *testing.T, url string, env []string, more ...string) (string, error) {
	t.Helper()
	args := append([]string{loopDir + "/agents.py", x.agent, x.query, "--format", string(x.format), "--url", url}, more...)
	cmd := exec.CommandContext(t.Context(), "python3", args...)
	client, err := filepath.Abs("../../bus/agent/python")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = slices.Concat(cleaned(os.Environ()), env, []string{"PYTHONPATH=" + client, "PYTHONDONTWRITEBYTECODE=1"})
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v\n%s", err, &stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// TestLoopExamples has the same five hooks in Go and in Python, in the agent's
// process and on workers, and looks at what the model was sent.
func TestLoopExamples(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3: the examples of agent loops stay untried")
	}
	t.Run("in process", func(t *testing.T) {
		t.Parallel()
		f := loopFabric(t, true)
		f.daemon()
		for _, x := range loopExamples() {
			t.Run(x.agent+x.more+" in Go", func(t *testing.T) {
				x.play(t, func(url string) (string, error) { return x.inGo(t, url, nil) })
			})
			t.Run(x.agent+x.more+" in Python", func(t *testing.T) {
				x.play(t, func(url string) (string, error) { return x.inPython(t, url, f.env) })
			})
		}
	})
	for name, inGo := range map[string]bool{"on a worker in Go": true, "on a worker in Python": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := loopFabric(t, inGo)
			f.daemon()
			fabric := dial(t, f.url)
			for _, x := range loopExamples() {
				t.Run(x.agent+x.more+" in Go", func(t *testing.T) {
					x.play(t, func(url string) (string, error) { return x.inGo(t, url, fabric) })
				})
				t.Run(x.agent+x.more+" in Python", func(t *testing.T) {
					x.play(t, func(url string) (string, error) { return x.inPython(t, url, f.env, "--fabric") })
				})
			}
		})
	}
}

// daemon starts the daemon that agents in Python ask.
func (f *exampleFabric) daemon() *process {
	f.t.Helper()
	p := startWith(f.t, append(f.env, "HOOKFABRIC_HTTP=127.0.0.1:0"), "agentshim", "serve")
	if err := eventually("the daemon says where it is", func() bool {
		_, err := os.Stat(filepath.Join(f.state, "daemon.json"))
		return err == nil
	}); err != nil {
		f.t.Fatal(err)
	}
	return p
}
