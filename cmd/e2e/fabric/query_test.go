package fabric_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	query "github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// A talker is an agent's loop in a whole fabric, with a model that says one thing after
// the other and remembers what it was asked.
type talker struct {
	f     *fabric
	loop  *query.Loop
	turns []schema.Message
	asked [][]schema.Message
	// before is done before the model answers, by the number of its call.
	before func(call int)
	ran    []string
}

// callOf is a message of a model that asks for a tool.
func callOf(tool, input string) schema.Message {
	return schema.Message{Role: schema.RoleAssistant, ToolCalls: []schema.ToolCall{{ID: "c-" + tool, Name: tool, Input: jsontext.Value(input)}}}
}

// talker starts one with a client of its own.
func (f *fabric) talker(turns ...schema.Message) *talker {
	f.t.Helper()
	a := &talker{f: f, turns: turns}
	c, err := client.Connect(f.t.Context(), client.Options{InProcess: f.broker, Logger: slog.New(f.log)})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(c.Close)
	var mu sync.Mutex
	tool := func(name string) query.Tool {
		return query.Tool{Name: name, Call: func(_ context.Context, input jsontext.Value) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			a.ran = append(a.ran, name+string(input))
			return "done", nil
		}}
	}
	a.loop, err = query.New(query.Options{
		Agent: "a", Session: team, Fabric: c, Tools: []query.Tool{tool("Read"), tool("Bash")}, Logger: slog.New(f.log),
		Model: query.ModelFunc(func(_ context.Context, r *query.Request) (schema.Message, error) {
			a.asked = append(a.asked, r.Messages)
			n := len(a.asked)
			if a.before != nil {
				a.before(n)
			}
			if n > len(a.turns) {
				return schema.AssistantText(fmt.Sprint("answer ", n)), nil
			}
			return a.turns[n-1], nil
		}),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return a
}

// run runs a query that is answered.
func (a *talker) run(prompt string) query.Response {
	a.f.t.Helper()
	answer, err := a.loop.Run(a.f.t.Context(), prompt)
	if err != nil {
		a.f.t.Fatalf("%v: %+v\n%s", err, answer, a.f.log)
	}
	return answer
}

// heard counts how often the nth request of the model, from 1, has a text.
func (a *talker) heard(n int, text string) int {
	all, err := schema.Marshal(a.asked[n-1])
	if err != nil {
		a.f.t.Error(err)
	}
	return strings.Count(string(all), text)
}

// A loop does what hooks of a whole fabric say.
func TestAQueryInAFabric(t *testing.T) {
	inBubbles(t, []scenario{
		{"a tool that is denied does not run, and another runs with what a hook made of its input", callsAreJudged},
		{"what comes while the model writes its answer has it go on, and is read once", endsWithNothingUnread},
		{"what no model has read comes again with the next query, and once", readByTheNextQuery},
		{"a hook that needs the conversation has it as the loop has it, at each event", seesTheConversation},
		{"a fabric that is gone in the midst of a query denies what it would have judged", goneInTheMidst},
	})
}

func callsAreJudged(t *testing.T) {
	f := start(t, `
hooks:
  PreToolUse:
    - {type: builtin, handler: shell, pool: go, matcher: Bash, fail_closed: true}
    - {type: builtin, handler: fixes, pool: go, matcher: Read}
`)
	f.serve("w", handlers{
		"shell": does(schema.Denied("no shell here")),
		"fixes": does(schema.Result{UpdatedInput: jsontext.Value(`{"path":"/safe"}`)}),
	})
	m := callOf("Bash", `{"command":"ls"}`)
	m.ToolCalls = append(m.ToolCalls, callOf("Read", `{"path":"/etc"}`).ToolCalls...)
	a := f.talker(m)
	a.run("look")
	if diff := cmp.Diff([]string{`Read{"path":"/safe"}`}, a.ran); diff != "" {
		t.Errorf("what ran (-want +got):\n%s", diff)
	}
	if a.heard(2, "was denied and did not run: no shell here") != 1 {
		t.Errorf("the model was asked %+v", a.asked[1])
	}
}

func endsWithNothingUnread(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.talker()
	a.before = func(call int) {
		if call == 1 {
			f.tell("use the other parser")
		}
	}
	if answer := a.run("go"); answer.Content != "answer 2" || a.heard(2, "use the other parser") != 1 {
		t.Errorf("%+v after %+v", answer, a.asked)
	}
	<-time.After(leaseOver)
	if answer := a.run("and now?"); answer.Content != "answer 3" || a.heard(3, "use the other parser") != 1 || f.waits() != 0 {
		t.Errorf("%+v after %+v; %d wait", answer, a.asked[2], f.waits())
	}
}

func readByTheNextQuery(t *testing.T) {
	f := start(t, nothingWritten)
	a := f.talker(callOf("Read", `{}`), callOf("Read", `{}`))
	stop := a.loop.On(schema.PostToolUse).Reject("enough")
	f.tell("mind the gap")
	if answer, err := a.loop.Run(t.Context(), "one"); err == nil {
		t.Fatalf("%+v", answer)
	}
	<-time.After(leaseOver)
	stop.Remove()
	a.run("two")
	if last := len(a.asked); a.heard(last, "mind the gap") != 1 {
		t.Errorf("the model was asked %+v", a.asked[last-1])
	}
	<-time.After(leaseOver)
	if n := f.waits(); n != 0 {
		t.Errorf("%d wait", n)
	}
}

func seesTheConversation(t *testing.T) {
	f := start(t, `
presets: []
hooks:
  BeforeLLMCall: [{type: builtin, handler: sees, pool: go, needs: [history], fail_closed: true}]
  PostToolUse: [{type: builtin, handler: sees, pool: go, needs: [history]}]
  BeforeFinalResponse: [{type: builtin, handler: sees, pool: go, needs: [history], fail_closed: true}]
`)
	var mu sync.Mutex
	var seen []string
	f.serve("w", handlers{"sees": func(_ context.Context, e *schema.Event) (schema.Result, error) {
		var all []schema.Message
		if err := schema.Unmarshal(e.History, &all); err != nil {
			return schema.Result{}, err
		}
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprint(e.HookType, " ", summed(all)))
		return schema.Result{}, nil
	}})
	a := f.talker(callOf("Read", `{}`))
	var want []string
	long := strings.Repeat("word ", 100_000)
	for _, at := range []schema.EventType{schema.BeforeLLMCall, schema.PostToolUse, schema.BeforeFinalResponse} {
		a.loop.On(at).Handle(schema.Continue, query.WithEffects(query.Append(schema.RoleUser, long), query.EffectFunc(func(_ context.Context, s *query.Status) error {
			want = append(want, fmt.Sprint(s.Event, " ", summed(s.History())))
			return nil
		})))
	}
	a.run("go")
	if diff := cmp.Diff(want, seen); diff != "" || len(want) != 4 {
		t.Errorf("%d events (-loop +hook):\n%s", len(want), diff)
	}
}

func goneInTheMidst(t *testing.T) {
	f := start(t, "hooks:\n  QueryEnd: [{type: builtin, handler: log}]\n")
	a := f.talker(callOf("Bash", `{}`))
	a.before = func(int) {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		if err := f.broker.Close(ctx); err != nil {
			t.Error(err)
		}
	}
	began := time.Now()
	answer, err := a.loop.Run(t.Context(), "go")
	if err == nil || answer.Status != query.Failed || len(a.ran) != 0 || !strings.Contains(answer.Error, "no broker judged") {
		t.Errorf("%+v, %v; %q ran", answer, err, a.ran)
	}
	if took := time.Since(began); took > 2*query.DefaultEventTimeout {
		t.Errorf("it took %v", took)
	}
}
