package queue_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// steps returns all steps.
func steps() []queue.Step {
	return []queue.Step{
		queue.StepEnqueueBegun, queue.StepEnqueueStored, queue.StepClaimBegun, queue.StepClaimStored, queue.StepAckBegun,
		queue.StepAckStored, queue.StepEndBegun, queue.StepEndStored, queue.StepMarkStored,
	}
}

// TestADeathAtAnyStepLosesNothingAndRepeatsNothing kills a process at each step of an item; its
// client repeats the request at another process. Under the race detector a third of the steps is
// tried.
func TestADeathAtAnyStepLosesNothingAndRepeatsNothing(t *testing.T) {
	for i, step := range steps() {
		if bustest.Raced && i%3 != 0 {
			continue
		}
		t.Run(string(step), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server.Server) {
				var finished atomic.Int32
				n := newNode(t, s, queue.Options{Dedup: 6 * time.Minute, Finish: func(context.Context, string, *schema.Item) error {
					finished.Add(1)
					return nil
				}})
				defer n.close()
				n.dieAt(step)
				died := 0
				until := func(do func() error) {
					t.Helper()
					err := do()
					synctest.Wait()
					for n.died() {
						died++
						err = do()
						synctest.Wait()
					}
					if err != nil {
						t.Fatal(err)
					}
					if died == 0 {
						n.dieAt(step)
					}
				}
				for i := range uint64(2) {
					until(func() error { _, err := n.queue.Enqueue(t.Context(), item(i+1)); return err })
				}
				var got queue.Claimed
				until(func() (err error) {
					got, err = n.queue.Claim(t.Context(), &queue.Claim{Routing: schema.Routing{Agent: "a", ID: "e1"}})
					return err
				})
				takes(t, got, "text 1", "text 2")
				until(func() error { return n.queue.Ack(t.Context(), "a", []string{"e1"}) })
				<-time.After(4 * time.Minute) // for the mark
				until(func() error { return nil })
				if died != 1 {
					t.Errorf("it died %d times", died)
				}
				if finished.Load() < 2 {
					t.Errorf("%d of 2 deliveries were finished", finished.Load())
				}
				takes(t, claim(t, n.queue, "e2"))
				for i := range uint64(2) {
					if r := enqueue(t, n.queue, item(i+1)); !r.Duplicate || r.State != schema.Delivered {
						t.Errorf("a repeat: %+v", r)
					}
				}
				<-time.After(6 * time.Minute)
				if _, err := n.queue.Enqueue(t.Context(), item(2)); err == nil {
					t.Error("a repeat after the window is accepted")
				}
			})
		})
	}
}

// TestEndedItemsStayEndedAfterACrash has a process die while an item ends
// otherwise than by delivery: it must not be taken for delivered.
func TestEndedItemsStayEndedAfterACrash(t *testing.T) {
	for _, step := range []queue.Step{queue.StepEndBegun, queue.StepEndStored} {
		for _, want := range []schema.ItemState{schema.Expired, schema.Withdrawn} {
			t.Run(fmt.Sprint(step, " ", want), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *server.Server) {
					n := newNode(t, s, queue.Options{Finish: func(context.Context, string, *schema.Item) error {
						t.Error("it was delivered")
						return nil
					}})
					defer n.close()
					it := item(1, expiry(time.Minute))
					enqueue(t, n.queue, it)
					takes(t, claim(t, n.queue, "e0"), "text 1")
					<-time.After(queue.LeaseFor)
					n.dieAt(step)
					if want == schema.Withdrawn {
						_, _ = n.queue.Withdraw(t.Context(), "a-a.p.1")
					} else {
						<-time.After(time.Minute + 5*time.Second)
					}
					if !n.died() {
						t.Error("it did not die")
					}
					takes(t, claim(t, n.queue, "e0")) // who had it before does not get it again
					takes(t, claim(t, n.queue, "e1"))
					<-time.After(10 * time.Second)
					if r := enqueue(t, n.queue, it); !r.Duplicate || r.State != want {
						t.Errorf("%+v", r)
					}
					if gone := n.takeExpired(); want == schema.Expired && step == queue.StepEndBegun && !cmp.Equal(gone, []string{"a-a.p.1"}) {
						t.Errorf("%q expired", gone)
					}
				})
			})
		}
	}
}
