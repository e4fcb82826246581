package bus

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

// TestAReusedEnvelopeMakesTheSameMessages compares messages of one reused envelope with those of
// new ones.
func TestAReusedEnvelopeMakesTheSameMessages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var kept Envelope
		maybe := rapid.SampledFrom([]string{"", "a", "b c", "ü"})
		for range rapid.IntRange(1, 8).Draw(t, "messages") {
			r := schema.Routing{
				Event: schema.PreToolUse, Agent: "agent1", ID: someID,
				Tool: maybe.Draw(t, "tool"), Session: maybe.Draw(t, "session"), Mute: rapid.Bool().Draw(t, "mute"), MidTurn: rapid.Bool().Draw(t, "midTurn"),
			}
			var got, want *Message
			if rapid.Bool().Draw(t, "event") {
				acks := rapid.SampledFrom([][]string{nil, {someID}, {otherID, someID}}).Draw(t, "acks")
				got = kept.Event("s", r, 1, time.Second, acks, []byte("{}"))
				want = new(Envelope).Event("s", r, 1, time.Second, acks, []byte("{}"))
			} else {
				b := &schema.Batch{
					Routing: r, Batch: maybe.Draw(t, "batch"), Version: rapid.Uint64Range(0, 2).Draw(t, "version"),
					Fabric: maybe.Draw(t, "fabric"), Hooks: []int{0, 3}, Left: time.Second,
				}
				got, want = kept.Batch("s", b), new(Envelope).Batch("s", b)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("a reused envelope makes another message (-want +got):\n%s", d)
			}
		}
	})
}

// TestAReusedEnvelopeAllocatesNothing protects the budget of a call, which 'loadtest bench' checks: each call sends a
// batch.
func TestAReusedEnvelopeAllocatesNothing(t *testing.T) {
	var e Envelope
	b := someBatch()
	b.Tool, b.Session, b.Hooks = "Bash", "s", []int{0} // nothing to escape
	e.Batch("s", b)
	if n := testing.AllocsPerRun(100, func() { e.Batch("s", b) }); n > 0 {
		t.Errorf("another batch takes %v allocations", n)
	}
}
