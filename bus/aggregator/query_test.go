package aggregator_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/loop"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// TestAQueryOutlivesTheBrokerThatJudgesIt has the broker that judges a call of a query die. A
// second broker judges the call, and the query has its answer. The model reads all items once, in
// order. A deny of the second broker is a deny.
func TestAQueryOutlivesTheBrokerThatJudgesIt(t *testing.T) {
	for _, decision := range []schema.Decision{schema.Continue, schema.Deny} {
		t.Run(string(decision), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { outlives(t, decision) })
		})
	}
}

func outlives(t *testing.T, decision schema.Decision) {
	s := bustest.Start(t)
	guard := hook("guard", remote, failClosed, idempotent)
	cfg := schema.Config{Version: 2, Hooks: append(delivering(), guard)}
	one := join(t, s, "one")
	if err := one.agg.Activate(cfg); err != nil {
		t.Fatal(err)
	}
	w := one.worker("w")
	beats, stop := context.WithCancel(t.Context())
	var beating sync.WaitGroup
	defer func() {
		stop()
		beating.Wait() // before the worker's connection is closed
	}()
	beating.Go(func() {
		for {
			select {
			case <-beats.Done():
				return
			case <-time.After(schema.BeatEvery):
				w.beat(schema.Beat{Capacity: 9})
			}
		}
	})
	c, err := client.Connect(t.Context(), client.Options{InProcess: s, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	var asked []string
	ran := 0
	l, err := loop.New(loop.Options{
		Agent: "a", Fabric: c, Logger: slog.New(slog.DiscardHandler),
		Tools: []loop.Tool{{Name: "work", Call: func(context.Context, jsontext.Value) (any, error) { ran++; return "done", nil }}},
		Model: loop.ModelFunc(func(_ context.Context, r *loop.Request) (schema.Message, error) {
			all, err := schema.Marshal(r.Messages)
			asked = append(asked, string(all))
			if len(asked) > 2 {
				return schema.AssistantText("done"), err
			}
			return schema.Message{ToolCalls: []schema.ToolCall{{ID: fmt.Sprint("c", len(asked)), Name: "work"}}}, err
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	one.inject("text-0")
	type end struct {
		loop.Response
		err error
	}
	ended := make(chan end, 1)
	go func() {
		r, err := l.Run(t.Context(), "go")
		ended <- end{r, err}
	}()
	w.answers(schema.Result{}) // the first call; the waiting items come with its result
	w.batch()                  // the second one's broker dies with it
	two := join(t, s, "two")
	if err := two.agg.Activate(cfg); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	two.inject("text-1")
	one.die()
	w.answers(schema.Result{Decision: decision, Reason: "not this"})
	got := <-ended
	want := 2
	if decision == schema.Deny {
		want = 1
	}
	if got.err != nil || got.Content != "done" || ran != want {
		t.Errorf("%+v; the tool ran %d times", got, ran)
	}
	for _, text := range []string{"text-0", "text-1"} {
		if text == "text-1" && decision == schema.Deny {
			continue // it waits for a tool that runs
		}
		if n := strings.Count(asked[len(asked)-1], text); n != 1 {
			t.Errorf("the model has %s %d times: %s", text, n, asked[len(asked)-1])
		}
	}
	if decision == schema.Deny && !strings.Contains(asked[2], "was denied and did not run: not this") {
		t.Errorf("the model was asked %s", asked[2])
	}
	<-time.After(queue.LeaseFor + time.Second)
	var left []string
	if decision == schema.Deny {
		left = []string{"text-1"}
	}
	if got := texts(two.ask(with(event(schema.PostToolUse), id(7), 1))); !slices.Equal(got, left) {
		t.Errorf("%q waits, not %q", got, left)
	}
}

// answers answers the next batch.
func (w *fakeWorker) answers(r schema.Result) {
	w.f.t.Helper()
	b, m := w.batch()
	w.answer(b, m, r)
}
