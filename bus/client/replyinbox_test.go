package client_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// TestALateAnswerIsNotUsedForAnotherCall makes aggregators answer calls that were asked twice or
// have ended, while other calls wait for their answers.
func TestALateAnswerIsNotUsedForAnotherCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		var mu sync.Mutex // guards late, because two subscriptions have goroutines of their own
		var late []*question
		f.serve(func(q *question) {
			mu.Lock()
			defer mu.Unlock()
			switch n := len(f.questions()); {
			case n <= 4:
				late = append(late, q) // two calls that are not answered
			case n == 5:
				late = append(late, q) // one that is answered at the second attempt
			default:
				for _, old := range late {
					old.answer(schema.Deny, "late")
				}
				q.answer(schema.Allow, "right")
			}
		})
		for range 2 {
			if _, err := f.ask(time.Minute); err == nil {
				t.Fatal("an unanswered call has a verdict")
			}
		}
		if _, err := f.ask(time.Minute); err != nil { // its first answer is late, and a deny
			t.Fatal(err)
		}
		for range 10 {
			if v, err := f.ask(time.Minute); err != nil || v.Reason != "right" {
				t.Fatalf("a call got %+v, %v", v, err)
			}
		}
	})
}

func TestAnsweredCallsReuseTheirSubjects(t *testing.T) {
	bustest.PlainOnly(t, "what is kept to be used again, some of which the detector drops")
	f := newFake(t, client.Options{})
	f.serve(func(q *question) {
		q.answer(schema.Allow, "")
		q.beat() // sent before the answer and still in transit
	})
	subjects := map[string]bool{}
	for range 50 {
		if _, err := f.ask(time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range f.questions() {
		subjects[q.Reply] = true
	}
	if len(subjects) > 25 {
		t.Errorf("50 calls one after the other took %d subjects", len(subjects))
	}
}
