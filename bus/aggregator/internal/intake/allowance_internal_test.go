package intake

import (
	"fmt"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

func TestNoAgentStoresForAll(t *testing.T) {
	bustest.PlainOnly(t, "who may store how much: sums, one after the other")
	const allowedMost, allowedFor = 128 << 20, time.Hour
	l := Allowance{Most: allowedMost, Per: allowedFor}
	now := time.Now()
	stores := func(agent string, want int64) {
		t.Helper()
		got := int64(0)
		for got <= allowedMost && l.Take(agent, schema.MaxPart, now) {
			got += schema.MaxPart
		}
		if got != want {
			t.Errorf("%s stored %d bytes, and may store %d", agent, got, want)
		}
	}
	stores("greedy", allowedMost)
	stores("other", allowedMost)
	now = now.Add(allowedFor - time.Second)
	stores("greedy", 0)
	for i := range allowedAgents + 100 { // names that would displace the entry of "greedy"
		l.Take(fmt.Sprint("name", i), 1, now)
	}
	if stores("greedy", 0); len(l.agents) > allowedAgents {
		t.Errorf("%d agents are counted", len(l.agents))
	}
	now = now.Add(time.Second)
	stores("greedy", allowedMost)
}
