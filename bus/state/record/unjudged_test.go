package record_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state/record"
	"github.com/hookfabric/hookfabric/schema"
)

func unjudgedCalls(n int) (all []schema.Unjudged) {
	for i := range n {
		all = append(all, schema.Unjudged{EventID: fmt.Sprintf("0199f3c1-6d1f-7e8a-9b2c-%012d", i), Agent: "a", Event: schema.PreToolUse, Decision: schema.Deny})
	}
	return all
}

// TestEachUnjudgedCallIsNewOnce reports the same calls to several brokers at once: each call is new to one of them.
func TestEachUnjudgedCallIsNewOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		var first, known atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				c, err := record.OpenUnjudged(t.Context(), bustest.JetStream(t, s), record.UnjudgedOptions{})
				if err != nil {
					t.Error(err)
					return
				}
				n, err := c.Add(t.Context(), unjudgedCalls(30), func(*schema.Unjudged) { first.Add(1) })
				if known.Add(int64(n)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if first.Load() != 30 || known.Load() != 90 {
			t.Errorf("%d were new, %d known; want 30 and 90", first.Load(), known.Load())
		}
		c, err := record.OpenUnjudged(t.Context(), bustest.JetStream(t, s), record.UnjudgedOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var fresh []string
		n, err := c.Add(t.Context(), unjudgedCalls(31), func(u *schema.Unjudged) { fresh = append(fresh, u.EventID) })
		if err != nil || n != 30 || !slices.Equal(fresh, []string{unjudgedCalls(31)[30].EventID}) {
			t.Errorf("known %d, new %v, %v", n, fresh, err)
		}
	})
}
