package dispatch_test

import (
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

// Each event × each word × with and without values of each kind: legal answers
// act, illegal ones are errors of their hook that name the legal ones, and follow
// its failure policy. It is the real dispatcher that judges, asking a worker.
func TestEveryAnswerFollowsTheContract(t *testing.T) {
	byEvent := map[schema.EventType][]bustest.Cell{}
	for _, c := range bustest.Cells() {
		byEvent[c.Event] = append(byEvent[c.Event], c)
	}
	for _, event := range schema.EventTypes() {
		if want := 12 * 7 * 2; len(byEvent[event]) != want {
			t.Errorf("%s has %d cells; want %d", event, len(byEvent[event]), want)
		}
		for _, c := range byEvent[event] {
			h := hook("h", at(event))
			h.FailClosed = c.Closed
			t.Run(c.String(), func(t *testing.T) {
				inWorld(t, []schema.Hook{h}, func(w *world) {
					res, err := schema.DecodeResult(event, []byte(c.Answer))
					if err != nil {
						t.Fatal(err)
					}
					w.peer("remote", "w", 1).act("h", act{says: res})
					v, _ := w.ask(time.Second)
					if d := c.Diff(&v); d != "" {
						t.Errorf("%s\n%s", c.Answer, d)
					}
				})
			})
		}
	}
}
