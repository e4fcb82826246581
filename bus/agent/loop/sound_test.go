package loop_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/schema"
)

// meddles registers a hook that drops and appends messages at some event, a limited
// number of times.
func meddles(rt *rapid.T, l *loop.Loop) {
	at := rapid.SampledFrom(steered()).Draw(rt, "event")
	decisions := []schema.Decision{schema.Continue, schema.Continue}
	for _, d := range []schema.Decision{schema.Deny, schema.Retry, schema.Fail} {
		if at.Permits(d) {
			decisions = append(decisions, d)
		}
	}
	d := schema.DropMessages{Role: rapid.SampledFrom([]string{"", "user", "assistant", "tool", "system"}).Draw(rt, "role"), First: rapid.IntRange(0, 3).Draw(rt, "first")}
	if d.First == 0 && d.Role == "" {
		d.Last = 1
	}
	effects := []loop.Effect{loop.DropMessages(d), loop.Append(rapid.SampledFrom([]string{"", "user", "assistant"}).Draw(rt, "as"), "meddled")}
	often := rapid.Int32Range(1, 3).Draw(rt, "often")
	var n atomic.Int32
	l.On(at).When(func(context.Context, *loop.Status) (bool, error) { return n.Add(1)%often == 0, nil }).
		Handle(rapid.SampledFrom(decisions).Draw(rt, "decision"), loop.WithEffects(effects[:rapid.IntRange(1, 2).Draw(rt, "effects")]...))
}

// With random hooks, the conversation of each request and at the end is valid for every
// API.
func TestTheConversationStaysValidForEveryAPI(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		takes := func(where string, messages []schema.Message) {
			for _, f := range render.Formats() {
				_, err := render.Conversation(f, messages, nil)
				if err != nil && !strings.Contains(err.Error(), "has only system messages") { // hooks may drop all of it
					rt.Errorf("%s, %s: %v: %q", where, f, err, talk(messages))
				}
			}
		}
		turns := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 5).Draw(rt, "calls of each turn")
		k := 0
		l, err := loop.New(loop.Options{
			Agent: "agent1", Logger: quiet(), MaxIterations: 8, Parallel: rapid.IntRange(1, 3).Draw(rt, "parallel"),
			System: rapid.SampledFrom([]string{"", "You add."}).Draw(rt, "system"), Tools: []loop.Tool{adding(), failing()},
			Model: loop.ModelFunc(func(_ context.Context, r *loop.Request) (schema.Message, error) {
				takes("a request", r.Messages)
				k++
				m := says("text")
				for i := range turns[(k-1)%len(turns)] {
					m.ToolCalls = append(m.ToolCalls, schema.ToolCall{ID: fmt.Sprintf("c%d-%d", k, i), Name: []string{"add", "fail", "ghost"}[i], Input: jsonValue(`{"a":1,"b":2}`)})
				}
				return m, nil
			}),
		})
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(0, 6).Draw(rt, "hooks") {
			meddles(rt, l)
		}
		for q := range 2 {
			answer, err := l.Run(t.Context(), fmt.Sprint("query ", q))
			if (err == nil) != (answer.Status == loop.Answered) {
				rt.Errorf("%+v, %v", answer, err)
			}
			takes("the end", l.History())
		}
	})
}
