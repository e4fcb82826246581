package queue_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/nats-io/nats.go/jetstream"
)

// written is how many revisions the bucket has seen.
func written(t *testing.T, js jetstream.JetStream, bucket string) uint64 {
	t.Helper()
	st, err := js.Stream(t.Context(), "KV_"+bucket)
	if err != nil {
		t.Fatal(err)
	}
	return st.CachedInfo().State.LastSeq
}

// A call with items costs one write more than one without, for any number of items, and also if it is the agent's
// first. It waits for that write and for no other request. The acknowledgement is one write, too.
func TestADeliveryIsOneWriteForAnyNumberOfItems(t *testing.T) {
	for _, n := range []int{1, 8, 100} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server.Server) {
				js, other := bustest.JetStream(t, s), bustest.JetStream(t, s)
				q, err := queue.Open(t.Context(), js, queue.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = q.Close(context.Background()) })
				for i := range n {
					enqueue(t, q, item(uint64(i+1)))
				}
				synctest.Wait()
				q.Seen("a", "s", "")
				synctest.Wait()
				asked := js.Conn().Stats().OutMsgs
				got := claim(t, q, "e1")
				if requests := js.Conn().Stats().OutMsgs - asked; len(got.Items) != n || requests != 1 {
					t.Errorf("%d items, %d requests", len(got.Items), requests)
				}
				<-time.After(time.Second) // the background work is done
				if all := written(t, other, queue.CursorBucket); all != 1 {
					t.Errorf("%d writes of the cursor for a claim", all)
				}
				ack(t, q, "e1")
				if all := written(t, other, queue.CursorBucket); all != 2 {
					t.Errorf("%d writes of the cursor for a claim and its acknowledgement", all)
				}
				<-time.After(time.Second)
				if all := written(t, other, queue.CursorBucket); all != 2 {
					t.Errorf("%d writes of the cursor, after all", all)
				}
			})
		})
	}
}

// An agent that was seen is known, whether a claim came or not.
func TestAnAgentThatIsSeenWhileItemsWaitIsStored(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q, js := open(t, s, queue.Options{}), bustest.JetStream(t, s)
		enqueue(t, q, item(1))
		q.Seen("a", "s", "")
		<-time.After(100 * time.Millisecond)
		if all := written(t, js, queue.CursorBucket); all != 1 {
			t.Errorf("%d writes of the cursor", all)
		}
	})
}

// The node that saw an agent first may die. Items for several agents must reach the agent through any other node.
func TestASeenAgentIsKnownToOtherNodesAtOnce(t *testing.T) {
	for name, how := range map[string]struct {
		ask func(*testing.T, *queue.Queue)
		o   queue.Options
	}{
		"what waits does not fit, and the node dies": {
			ask: func(t *testing.T, q *queue.Queue) { takes(t, claim(t, q, "e1")); synctest.Wait() },
			o:   queue.Options{Step: func(queue.Step) error { return nil }}, // it says nothing when it is closed
		},
		"the node is stopped before a claim": {ask: func(_ *testing.T, q *queue.Queue) { q.Seen("a", "s", "") }},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server.Server) {
				q, other := open(t, s, how.o), open(t, s, queue.Options{})
				enqueue(t, q, item(1, matcher("Other")))
				how.ask(t, q)
				if err := q.Close(t.Context()); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				enqueue(t, other, item(2, forSession))
				takes(t, claim(t, other, "e2"), "text 2")
			})
		})
	}
}
