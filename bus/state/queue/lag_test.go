package queue_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// watchers are the consumers of the bucket.
func watchers(t *testing.T, s *server.Server, bucket string) (names []string) {
	t.Helper()
	st, err := bustest.JetStream(t, s).Stream(t.Context(), "KV_"+bucket)
	if err != nil {
		t.Fatal(err)
	}
	for name := range st.ConsumerNames(t.Context()).Name() {
		names = append(names, name)
	}
	return names
}

// silenced opens two queues, the second of which hears nothing of the bucket
// when silence was called.
func silenced(t *testing.T, s *server.Server, bucket string) (q, deaf *queue.Queue, silence func()) {
	deaf = open(t, s, queue.Options{})
	before := watchers(t, s, bucket)
	q = open(t, s, queue.Options{})
	return q, deaf, func() {
		t.Helper()
		synctest.Wait()
		st, err := bustest.JetStream(t, s).Stream(t.Context(), "KV_"+bucket)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range before {
			if err := st.DeleteConsumer(t.Context(), name); err != nil {
				t.Error(err)
			}
		}
		if len(before) != 1 || slices.Equal(before, watchers(t, s, bucket)) {
			t.Errorf("the watchers were %v", before)
		}
	}
}

func TestItemsOfAllNodesAreDeliveredInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q, deaf, silence := silenced(t, s, queue.ItemBucket)
		silence()
		enqueue(t, q, item(1))
		enqueue(t, deaf, item(2))
		takes(t, claim(t, deaf, "e1"), "text 1", "text 2")
	})
}

func TestCurrentCatchesUpWithoutNotifications(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q, deaf, silence := silenced(t, s, queue.ItemBucket)
		silence()
		enqueue(t, q, item(1))
		if waits := pending(deaf); len(waits) > 0 {
			t.Errorf("it is not deaf: %v", waits)
		}
		if err := deaf.Current(t.Context()); err != nil || len(pending(deaf)) != 1 {
			t.Errorf("%v wait, %v", pending(deaf), err)
		}
	})
}

func TestANodeWithOldItemsDoesNotDeliverDoneItems(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q, deaf, silence := silenced(t, s, queue.ItemBucket)
		enqueue(t, q, item(1, matcher("Other")))
		enqueue(t, q, item(2, source("two")))
		silence()
		takes(t, claim(t, q, "e1"), "text 2")
		ack(t, q, "e1")
		synctest.Wait()
		if err := q.Note(t.Context(), "a", "", func(p *schema.Peers) { p.VoteOnly = true }); err != nil { // says no more that 2 is done
			t.Error(err)
		}
		synctest.Wait()
		takes(t, claim(t, deaf, "e2", tool("Other")), "text 1")
	})
}

func TestANodeWithAnOldCursorDecidesAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q, deaf, silence := silenced(t, s, queue.CursorBucket)
		q.Seen("a", "s", "")
		for n := range uint64(3) {
			enqueue(t, q, item(n+1, source(fmt.Sprint("s", n))))
		}
		silence()
		takes(t, claim(t, q, "e1", func(c *queue.Claim) { c.MaxBytes = 1 }), "text 1")
		takes(t, claim(t, deaf, "e2", func(c *queue.Claim) { c.MaxBytes = 1 }), "text 2")
		if err := deaf.Ack(t.Context(), "a", []string{"e1"}); err != nil {
			t.Error(err)
		}
		takes(t, claim(t, q, "e3", acks("e2")), "text 3")
		if err := deaf.Ack(t.Context(), "a", []string{"e3"}); err != nil {
			t.Error(err)
		}
		<-time.After(10 * time.Second)
		if p := q.Pending("", 0); p.Total != 0 {
			t.Errorf("%+v", p)
		}
	})
}

func TestASecondAttemptAtAnotherNodeGetsTheSameItems(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		deaf := open(t, s, queue.Options{})
		deaf.Seen("a", "s", "")
		synctest.Wait()
		var silence []func()
		for _, bucket := range []string{queue.ItemBucket, queue.CursorBucket} {
			for _, name := range watchers(t, s, bucket) {
				silence = append(silence, func() {
					if err := bustest.JetStream(t, s).DeleteConsumer(t.Context(), "KV_"+bucket, name); err != nil {
						t.Error(err)
					}
				})
			}
		}
		q := open(t, s, queue.Options{})
		for _, f := range silence {
			f()
		}
		enqueue(t, q, item(1))
		takes(t, claim(t, q, "e1"), "text 1")
		again := claim(t, deaf, "e1", func(c *queue.Claim) { c.Asked = true })
		takes(t, again, "text 1")
		if !again.Again || len(silence) != 2 {
			t.Errorf("again: %v, of %d watchers", again.Again, len(silence))
		}
	})
}
