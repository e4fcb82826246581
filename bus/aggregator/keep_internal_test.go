package aggregator

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
	l := allowance{most: allowedMost, per: allowedFor}
	now := time.Now()
	stores := func(agent string, want int64) {
		t.Helper()
		got := int64(0)
		for got <= allowedMost && l.take(agent, schema.MaxPart, now) {
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
		l.take(fmt.Sprint("name", i), 1, now)
	}
	if stores("greedy", 0); len(l.agents) > allowedAgents {
		t.Errorf("%d agents are counted", len(l.agents))
	}
	now = now.Add(time.Second)
	stores("greedy", allowedMost)
}

// TestPartsLeaveRoomForOtherRequests checks that requests with parts of conversations leave room
// for all other requests.
func TestPartsLeaveRoomForOtherRequests(t *testing.T) {
	b := newBudgets()
	var release []func()
	for {
		done, err := b.take(schema.VerbKeep, false, schema.MaxPart)
		if err != nil {
			break
		}
		release = append(release, done)
	}
	n := 0
	for range maxKeeps / verbShare {
		done, err := b.take(schema.VerbAck, false, verbShare)
		if err != nil {
			break
		}
		n++
		release = append(release, done)
	}
	if n != maxKeeps/verbShare {
		t.Errorf("%d acknowledgements found room", n)
	}
	if _, err := b.take(schema.VerbKeep, false, verbShare); err == nil {
		t.Error("there is room for nobody, and a part found some")
	}
	for _, done := range release {
		done()
	}
	if done, err := b.take(schema.VerbKeep, false, maxKeeps); err != nil {
		t.Errorf("nothing is under way: %v", err)
	} else {
		done()
	}
}
