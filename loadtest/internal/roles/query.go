package roles

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// toolCalls is the number of tools that the model of a query calls, in one message.
const toolCalls = 4

// QueryEvents is how many events a query has: its prompt, two calls of the model,
// the tools between them, the final response and the end.
const QueryEvents = 1 + 2 + 2 + 2*toolCalls + 1 + 1

// A Query is one whole query of an agent: the model calls four tools and then answers.
// Model and tools take no time. The Go client's loop runs it. For comparison, bare
// request-replies carry the events of such a loop.
type Query struct {
	// Agent is the agent of the query, which selects the hooks of the fabric.
	Agent string `json:"agent"`
	// AtOnce runs the tools at the same time, not one after the other.
	AtOnce bool `json:"at_once,omitzero"`
	// Hooks is how many hooks must see each event.
	Hooks int `json:"hooks"`
}

// loop makes an agent's loop. fabric may be nil. The loop calls verdict with each event and
// its verdict.
func (q *Query) loop(fabric *client.Client, verdict func(*schema.Event, *schema.Verdict)) (*loop.Loop, error) {
	padding := strings.Repeat("x", EventSize/2)
	output := jsontext.Value(`"` + padding + `"`)
	calls := schema.AssistantText(padding)
	for i := range toolCalls {
		calls.ToolCalls = append(calls.ToolCalls, schema.ToolCall{
			ID: fmt.Sprintf("call_%d", i), Name: "Bash", Input: jsontext.Value(`{"command":"make test # ` + padding + `"}`),
		})
	}
	o := loop.Options{
		Agent: q.Agent, Session: "0d4c3f1e-load", Fabric: fabric, Parallel: toolCalls, Verdict: verdict,
		Model: loop.ModelFunc(func(_ context.Context, r *loop.Request) (schema.Message, error) {
			if r.Iteration == 1 {
				return calls, nil
			}
			return schema.AssistantText(padding), nil
		}),
		Tools: []loop.Tool{{Name: "Bash", Call: func(context.Context, jsontext.Value) (any, error) { return output, nil }}},
	}
	if !q.AtOnce {
		o.Parallel = 1
	}
	return loop.New(o)
}

// A queryAgent is a loop and the results of its last query. It runs one query at a time.
type queryAgent struct {
	loop  *loop.Loop
	hooks int

	mu     sync.Mutex // guards what follows
	events int
	wrong  error
}

// heard checks the verdict on one event.
func (a *queryAgent) heard(e *schema.Event, v *schema.Verdict) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events++
	ran := 0
	for _, h := range v.ExecutedHooks {
		if h.Outcome == schema.OK {
			ran++
		}
	}
	if ran != a.hooks || len(v.ExecutedHooks) != ran || len(v.HookErrors) > 0 {
		a.wrong = fmt.Errorf("at %s %d of %d hooks were fine where %d are due, with the errors %q", e.HookType, ran, len(v.ExecutedHooks), a.hooks, v.HookErrors)
	}
}

// run runs a query from the beginning of a conversation, so that all queries are alike.
func (a *queryAgent) run(ctx context.Context) error {
	a.mu.Lock()
	a.events, a.wrong = 0, nil
	a.mu.Unlock()
	if err := a.loop.NewConversation(); err != nil {
		return err
	}
	if _, err := a.loop.Run(ctx, "do it"); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wrong == nil && a.events != QueryEvents {
		a.wrong = fmt.Errorf("a query had %d events where %d are due", a.events, QueryEvents)
	}
	return a.wrong
}

// byLoop runs queries of the loop with the fabric. Each caller has its own loop, so as many
// queries run at the same time.
func (q *Query) byLoop(fabric *client.Client) func(context.Context, int) error {
	var idle sync.Pool
	return func(ctx context.Context, _ int) error {
		a, _ := idle.Get().(*queryAgent)
		if a == nil {
			a = &queryAgent{hooks: q.Hooks}
			var err error
			if a.loop, err = q.loop(fabric, a.heard); err != nil {
				return err
			}
		}
		defer idle.Put(a)
		return a.run(ctx)
	}
}

// A script has the events of a query in their order. The events of one tool call are
// together, because calls may run at the same time.
type script struct {
	before []schema.Event
	tools  [][]schema.Event
	after  []schema.Event
}

// script runs a loop without a fabric, and records its events.
func (q *Query) script(ctx context.Context) (*script, error) {
	s := new(script)
	calls := map[string]int{}
	l, err := (&Query{Agent: q.Agent}).loop(nil, func(e *schema.Event, _ *schema.Verdict) {
		at, known := calls[e.ToolUseID]
		switch {
		case e.ToolUseID == "" && len(s.tools) == 0:
			s.before = append(s.before, *e)
		case e.ToolUseID == "":
			s.after = append(s.after, *e)
		case known:
			s.tools[at] = append(s.tools[at], *e)
		default:
			calls[e.ToolUseID] = len(s.tools)
			s.tools = append(s.tools, []schema.Event{*e})
		}
	})
	if err != nil {
		return nil, err
	}
	if _, err := l.Run(ctx, "do it"); err != nil {
		return nil, err
	}
	n := len(s.before) + len(s.after)
	for _, t := range s.tools {
		n += len(t)
	}
	if n != QueryEvents {
		return nil, fmt.Errorf("a query has %d events where %d are due", n, QueryEvents)
	}
	return s, nil
}

// byHand sends the events of a loop one by one to a responder.
func (q *Query) byHand(ctx context.Context, via ask) (func(context.Context, int) error, error) {
	s, err := q.script(ctx)
	if err != nil {
		return nil, err
	}
	inOrder := func(ctx context.Context, events []schema.Event) error {
		for i := range events {
			if err := once(ctx, via, events[i]); err != nil {
				return err
			}
		}
		return nil
	}
	return func(ctx context.Context, _ int) error {
		if err := inOrder(ctx, s.before); err != nil {
			return err
		}
		g, tools := errgroup.WithContext(ctx)
		if !q.AtOnce {
			g.SetLimit(1)
		}
		for _, call := range s.tools {
			g.Go(func() error { return inOrder(tools, call) })
		}
		if err := g.Wait(); err != nil {
			return err
		}
		return inOrder(ctx, s.after)
	}, nil
}

// once asks about an event like e, with a new id.
func once(ctx context.Context, via ask, e schema.Event) error {
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("making an event's id: %w", err)
	}
	e.EventID = id.String()
	v, err := via(ctx, &e, 1)
	if err != nil {
		return fmt.Errorf("asking about %s: %w", e.HookType, err)
	}
	return check(v, 1)
}
