package queue_test

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// What a drain holds for a tool that is not called yet holds up no later item, as it
// would not in the queue.
func TestADrainSkipsItemsThatWaitForTheirTool(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q := open(t, s, queue.Options{})
		enqueue(t, q, item(1, matcher("Other")))
		enqueue(t, q, item(2))
		enqueue(t, q, item(3))
		one := func(c *queue.Claim) {
			c.Channel = true
			c.Choose = func(_ *schema.Peers, due []*schema.Item) []*schema.Item { return due[:min(1, len(due))] }
		}
		takes(t, claim(t, q, "e1", anyTool, one), "text 1")
		takes(t, claim(t, q, "e2", anyTool, one), "text 2")
		takes(t, claim(t, q, "e3", anyTool, one))
		takes(t, claim(t, q, "e4"))
		ack(t, q, "e2")
		takes(t, claim(t, q, "e5", anyTool, one), "text 3")
	})
}

func TestALeaseThatIsReleasedEnds(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		q, other := open(t, s, queue.Options{}), open(t, s, queue.Options{})
		enqueue(t, q, item(1))
		takes(t, claim(t, q, "e1"), "text 1")
		if err := q.Release(t.Context(), "a", []string{"e1", "e9"}); err != nil {
			t.Fatal(err)
		}
		takes(t, claim(t, q, "e1"), "text 1") // while it is leased to this event
		if err := other.Release(t.Context(), "a", []string{"e1"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // until q has heard of it
		takes(t, claim(t, q, "e2"), "text 1")
		ack(t, q, "e1") // it went out elsewhere
		if d := cmp.Diff([]string{"a-a.p.1 leased e2"}, pending(q)); d != "" {
			t.Error(d)
		}
	})
}
