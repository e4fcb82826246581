package queue_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// by is an item that an agent itself put into the queue.
func by(author string) func(*schema.Item) { return func(it *schema.Item) { it.Author = author } }

// warning is an item that says that a round's time is over.
func warning(it *schema.Item) { it.TimeLimit, it.Producer = &schema.TimeLimit{Round: 1}, "round" }

// refused enqueues an item that must be refused with an error that says so.
func refused(t *testing.T, q *queue.Queue, it *schema.Item, as error, says string) {
	t.Helper()
	if _, err := q.Enqueue(t.Context(), it); !errors.Is(err, as) || !strings.Contains(err.Error(), says) {
		t.Errorf("%v; want %q", err, says)
	}
}

// current has queues know what others accepted.
func current(t *testing.T, all ...*queue.Queue) {
	t.Helper()
	for _, q := range all {
		if err := q.Current(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnAuthorHasAnAllowanceWhicheverBrokerTakesItsItems(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		o := queue.Options{MaxPerAuthor: 2, MaxAuthorBytes: 4000}
		one, two := open(t, s, o), open(t, s, o)
		enqueue(t, one, item(1, forSession, by("wild")))
		current(t, one, two)
		enqueue(t, two, item(2, forSession, by("wild")))
		current(t, one, two)
		for _, q := range []*queue.Queue{one, two} {
			refused(t, q, item(3, forSession, by("wild")), queue.ErrAllowance, "--agent-answers")
			if err := q.Allows(item(3, forSession, by("wild"))); !errors.Is(err, queue.ErrAllowance) {
				t.Errorf("it is known before the text is stored: %v", err)
			}
		}
		if r := enqueue(t, one, item(2, forSession, by("wild"))); !r.Duplicate {
			t.Errorf("a repeat takes no room: %+v", r)
		}
		enqueue(t, one, item(4, forSession, by("quiet")))
		enqueue(t, one, item(5, forSession))
		refused(t, one, item(6, forSession, by("quiet"), func(it *schema.Item) { it.Content = strings.Repeat("x", 4000) }), queue.ErrAllowance, "--agent-answer-bytes")
		refused(t, one, item(6, forSession, by("quiet"), func(it *schema.Item) { it.Content, it.Object = "", &schema.Object{Digest: "d", Size: 4000} }),
			queue.ErrAllowance, "--agent-answer-bytes")
		if _, err := one.Withdraw(t.Context(), "s-s.p.1"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		enqueue(t, one, item(7, forSession, by("wild")))
	})
}

func TestAgentsLeaveAReserveAndOperatorsAPartOfIt(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{MaxPerScope: 20, MaxItems: 40, Reserve: 50})
		n := uint64(0)
		fill := func(most int, change ...func(*schema.Item)) {
			t.Helper()
			for range most {
				n++
				enqueue(t, q, item(n, change...))
			}
		}
		fill(10, forSession, by("wild"))
		refused(t, q, item(100, forSession, by("quiet")), queue.ErrFull, "--reserve")
		fill(8, forSession)
		refused(t, q, item(100, forSession), queue.ErrFull, "wait for s-s")
		fill(18)
		refused(t, q, item(100), queue.ErrFull, "36 wait in all")
		fill(30, warning) // which no number refuses
	})
}

func TestAgentsLeaveAPartOfTheBucketFree(t *testing.T) {
	bustest.PlainOnly(t, "how much is stored: one text after the other")
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{Room: 1, Reserve: 50}) // which has the least: 32 MiB
		text := strings.Repeat("x", queue.MaxContent)
		fill := func(most int, change ...func(*schema.Item)) (n int) {
			t.Helper()
			for n < most {
				it := item(0, change...)
				it.Content = text
				if _, err := q.Enqueue(t.Context(), it); err != nil {
					if !errors.Is(err, queue.ErrFull) {
						t.Fatal(err)
					}
					return n
				}
				n++
			}
			return n
		}
		if n := fill(1000, forSession, by("wild")); n < 50 || n > 58 {
			t.Errorf("agents stored %d texts of 256 KiB; half of 29 MiB are 57", n)
		}
		if n := fill(1000, forSession); n < 40 || n > 48 {
			t.Errorf("operators stored %d more; 90 %% of 29 MiB are 103", n)
		}
		enqueue(t, q, item(1, warning))
	})
}
