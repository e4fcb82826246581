package queue_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
)

func TestMain(m *testing.M) {
	if os.Getenv("HOOKFABRIC_LONG") == "" && !bustest.Raced { // else as many as the library, or the command line, says
		_ = flag.Set("rapid.checks", "40")
	}
	bustest.Main(m)
}

// bubble runs a test with a server of its own, in a bubble of time.
func bubble(t *testing.T, f func(t *testing.T, s *server.Server)) {
	synctest.Test(t, func(t *testing.T) { f(t, bustest.Start(t)) })
}

// open opens a queue on s until the test ends.
func open(t testing.TB, s *server.Server, o queue.Options) *queue.Queue {
	t.Helper()
	q, err := queue.Open(context.Background(), bustest.JetStream(t, s), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return q
}

// item is one for the agent a, of a producer p.
func item(n uint64, change ...func(*schema.Item)) *schema.Item {
	it := &schema.Item{
		Scope: schema.Scope{Agent: "a"}, Producer: "p", Number: n,
		Source: schema.SourceHuman, Strategy: schema.ToolResult, Content: fmt.Sprint("text ", n),
	}
	for _, c := range change {
		c(it)
	}
	return it
}

func forAll(it *schema.Item)     { it.Scope = schema.Scope{} }
func forSession(it *schema.Item) { it.Scope = schema.Scope{Session: "s"} }

func source(s string) func(*schema.Item) { return func(it *schema.Item) { it.Source = s } }

func expiry(d time.Duration) func(*schema.Item) {
	return func(it *schema.Item) { it.Expiry = schema.Duration(d) }
}

// enqueue puts an item into the queue.
func enqueue(t testing.TB, q *queue.Queue, it *schema.Item) schema.Receipt {
	t.Helper()
	r, err := q.Enqueue(t.Context(), it)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// claim takes what is due for agent a in session s after a call of the tool T.
func claim(t testing.TB, q *queue.Queue, event string, change ...func(*queue.Claim)) queue.Claimed {
	t.Helper()
	c := &queue.Claim{Routing: schema.Routing{Agent: "a", Session: "s", Tool: "T", ID: event}}
	for _, f := range change {
		f(c)
	}
	got, err := q.Claim(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func acks(events ...string) func(*queue.Claim) { return func(c *queue.Claim) { c.Acks = events } }

func as(agent string) func(*queue.Claim) { return func(c *queue.Claim) { c.Agent = agent } }

// takes compares the texts of what was claimed.
func takes(t testing.TB, got queue.Claimed, want ...string) {
	t.Helper()
	var texts []string
	for _, it := range got.Items {
		texts = append(texts, it.Content)
	}
	if d := cmp.Diff(want, texts, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func ack(t testing.TB, q *queue.Queue, events ...string) {
	t.Helper()
	if err := q.Ack(t.Context(), "a", events); err != nil {
		t.Error(err)
	}
}

// pending are the numbers and states of what waits for the agent a.
func pending(q *queue.Queue) (all []string) {
	for _, p := range q.Pending("a", 0).Items {
		all = append(all, fmt.Sprint(p.Key, " ", p.State, " ", p.Event))
	}
	return all
}

func TestAnItemGoesFromQueuedToLeasedToDelivered(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		r := enqueue(t, q, item(1))
		if d := cmp.Diff(schema.Receipt{Key: "a-a.p.1", Sequence: r.Sequence, State: schema.Queued}, r); d != "" || r.Sequence == 0 {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"a-a.p.1 queued "}, pending(q)); d != "" || !q.Due("a", "", "") {
			t.Error(d)
		}
		takes(t, claim(t, q, "e1"), "text 1")
		if d := cmp.Diff([]string{"a-a.p.1 leased e1"}, pending(q)); d != "" {
			t.Error(d)
		}
		takes(t, claim(t, q, "e2"))
		ack(t, q, "e1")
		if d := cmp.Diff([]string(nil), pending(q)); d != "" || q.Due("a", "", "") {
			t.Error(d)
		}
		synctest.Wait()
		again := enqueue(t, q, item(1))
		if d := cmp.Diff(schema.Receipt{Key: "a-a.p.1", Sequence: r.Sequence, Duplicate: true, State: schema.Delivered}, again); d != "" {
			t.Error(d)
		}
		takes(t, claim(t, q, "e3"))
	})
}

func TestTheSameEventGetsTheSameItems(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q, other := open(t, s, queue.Options{}), open(t, s, queue.Options{})
		enqueue(t, q, item(1))
		enqueue(t, other, item(2))
		synctest.Wait()
		first := claim(t, q, "e1")
		takes(t, first, "text 1", "text 2")
		enqueue(t, q, item(3))
		for _, each := range []*queue.Queue{q, other} {
			again := claim(t, each, "e1")
			takes(t, again, "text 1", "text 2")
			if first.Again || !again.Again {
				t.Errorf("again: %v, %v", first.Again, again.Again)
			}
		}
		synctest.Wait()
		takes(t, claim(t, other, "e2", acks("e1")), "text 3")
	})
}

func connect(t testing.TB, s *server.Server) *nats.Conn { return bustest.Connect(t, s, "queue") }
