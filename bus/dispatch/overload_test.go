package dispatch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// With twice as many calls as a pool can run, the calls that run are in time, and the
// others are refused soon.
func TestAnOverloadedPoolRunsAsManyCallsAsItCan(t *testing.T) {
	const slots, each, long, left = 4, 100 * time.Millisecond, 20 * time.Second, 3 * time.Second
	h := hook("x")
	h.FailClosed = true
	inWorldWithQueue(t, 4096, []schema.Hook{h}, func(w *world) {
		w.peer("remote", "a", slots).act("x", act{takes: each})
		type call struct {
			v    schema.Verdict
			took time.Duration
		}
		calls, n := make(chan call, 10_000), 0
		for start := time.Now(); time.Since(start) < long; n++ {
			go func() {
				v, took := w.ask(left)
				calls <- call{v, took}
			}()
			pass(each / slots / 2)
		}
		ran, refused := 0, 0
		for range n {
			c := <-calls
			switch {
			case trail(c.v) == "x=ok@a":
				ran++
			case strings.HasPrefix(trail(c.v), "x=busy") && c.v.Decision == schema.Deny:
				if refused++; c.took > 0 {
					t.Fatalf("one was refused after %v: %s", c.took, c.v.Reason)
				}
			default:
				t.Fatalf("%s after %v", trail(c.v), c.took)
			}
		}
		if can := int(long / each * slots); ran < can*95/100 || ran+refused != n {
			t.Errorf("%d ran and %d were refused of %d, of which %d can be run", ran, refused, n, can)
		}
		if v, took := w.ask(left); took != each || trail(v) != "x=ok@a" {
			t.Errorf("after all that a call takes %v: %s", took, trail(v))
		}
	})
}
