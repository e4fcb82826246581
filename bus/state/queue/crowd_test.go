package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// delivered has so many items of a producer delivered, one after the other, from first on.
func delivered(t *testing.T, q *queue.Queue, first, n uint64) {
	t.Helper()
	for i := first; i < first+n; i++ {
		enqueue(t, q, item(i))
		claim(t, q, fmt.Sprint("e", i))
		ack(t, q, fmt.Sprint("e", i))
		<-time.After(2 * time.Second) // it is known how many ends there are
	}
}

// messages is how many there are in the bucket of the items.
func messages(t *testing.T, s *server.Server) uint64 {
	t.Helper()
	st, err := bustest.JetStream(t, s).Stream(t.Context(), "KV_"+queue.ItemBucket)
	if err != nil {
		t.Fatal(err)
	}
	return st.CachedInfo().State.Msgs
}

// becomes says what becomes of a repeat.
func becomes(t *testing.T, q *queue.Queue, n uint64) string {
	t.Helper()
	r, err := q.Enqueue(t.Context(), item(n))
	switch {
	case errors.Is(err, queue.ErrTooOld):
		return "too old"
	case err != nil:
		t.Fatal(err)
	case r.Duplicate && r.State == schema.Delivered:
		return "duplicate"
	}
	return "accepted"
}

// Delivered items are never accepted again, also if a process dies.
func TestMarksReplaceEndsIfThereAreTooMany(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint("dies: ", dies), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server.Server) {
				o := queue.Options{MaxEnds: 16}
				if dies {
					o.Step = func(queue.Step) error { return nil } // it says nothing when it is closed
				}
				q := open(t, s, o)
				if all := q.Stats().Remembered; all != queue.DefaultDedup {
					t.Errorf("few ends are remembered for %v", all)
				}
				delivered(t, q, 1, 40)
				if less := q.Stats().Remembered; less >= queue.DefaultDedup {
					t.Errorf("very many ends are remembered for %v", less)
				}
				for n := uint64(1); n <= 40; n++ {
					if got := becomes(t, q, n); got != "duplicate" {
						t.Errorf("soon after its end %d is %s", n, got)
					}
				}
				if err := q.Close(context.Background()); err != nil {
					t.Fatal(err)
				}
				<-time.After(2 * time.Hour)
				q = open(t, s, queue.Options{MaxEnds: 16})
				if n := messages(t, s); n > 16/2+3 {
					t.Errorf("%d ends are left", n)
				}
				for n := uint64(1); n <= 40; n++ {
					// There were few ends at first, and how many there are is known a second later.
					got := becomes(t, q, n)
					if n <= 8 && got != "duplicate" || n > 12 && got != "too old" || got == "accepted" {
						t.Errorf("2 hours later %d is %s", n, got)
					}
				}
				if got := becomes(t, q, 41); got != "accepted" {
					t.Errorf("the next one is %s", got)
				}
			})
		})
	}
}

// A mark stays small however many ends it stands for.
func TestAMarkIsSmallHoweverManyEndsItStandsFor(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{MaxEnds: 1, Dedup: time.Hour})
		delivered(t, q, 1, 300) // 10 minutes, in which ends are forgotten after 2
		kv, err := bustest.JetStream(t, s).KeyValue(t.Context(), queue.CursorBucket)
		if err != nil {
			t.Fatal(err)
		}
		e, err := kv.Get(t.Context(), "a.p")
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(e.Value()), "from"); n == 0 || n > 24 {
			t.Errorf("%d parts: %s", n, e.Value())
		}
		if n := messages(t, s); n > 100 {
			t.Errorf("%d ends are left", n)
		}
	})
}

// BenchmarkDelivered is what an item costs that was delivered and is remembered, right
// after that. The server gives back two thirds of it within two minutes.
func BenchmarkDelivered(b *testing.B) {
	s := bustest.Start(b)
	q := open(b, s, queue.Options{})
	n := uint64(0)
	before := heap()
	for b.Loop() {
		n++
		enqueue(b, q, item(n))
		if n%10 == 0 {
			claim(b, q, fmt.Sprint("e", n), acks(fmt.Sprint("e", n-10)))
		}
	}
	b.ReportMetric(float64(heap()-before)/float64(n), "B/item")
}
