package client

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus"
)

// someEvent returns the id of the n-th event.
func someEvent(n int) string { return fmt.Sprintf("0199f3c1-6d1f-7e8a-9b2c-%012d", n) }

func newLog(t *testing.T) *deliveryLog {
	t.Helper()
	l := newDeliveryLog()
	l.learn("a", "f", nil)
	return l
}

func noted(agent string, n int) *Handover {
	return &Handover{Fabric: "f", Agent: agent, Events: []string{someEvent(n)}, Sequences: []uint64{uint64(n)}}
}

func TestTheOldestAcknowledgementsOverTheLimitAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t)
		for n := range maxNoted + 5 {
			l.restore(noted(fmt.Sprint("agent", n%7), n))
			pass(time.Microsecond)
		}
		_, _, dropped := l.due(time.Now())
		if dropped != 5 || l.noted != maxNoted {
			t.Errorf("%d were dropped, %d are noted", dropped, l.noted)
		}
		total := 0
		for _, a := range l.agents {
			total += len(a.noted)
		}
		if newest := fmt.Sprint("agent", (maxNoted+4)%7); total != maxNoted || !slices.Contains(l.agents[newest].noted, someEvent(maxNoted+4)) {
			t.Errorf("%d are noted, and the newest is not among them", total)
		}
	})
}

func pass(d time.Duration) { <-time.After(d) }

func TestAnEventCarriesALimitedNumberOfAcknowledgements(t *testing.T) {
	l := newLog(t)
	for n := range bus.MaxAcks + 20 {
		l.restore(noted("a", n))
	}
	pendingAcks := l.pendingAcks("a")
	if len(pendingAcks) != bus.MaxAcks || pendingAcks[0] != someEvent(0) {
		t.Errorf("%d are carried, the first is %s", len(pendingAcks), pendingAcks[0])
	}
	l.learn("a", "f", pendingAcks)
	if pendingAcks = l.pendingAcks("a"); len(pendingAcks) != 20 || l.noted != 20 {
		t.Errorf("%d are left, %d noted", len(pendingAcks), l.noted)
	}
	if pendingAcks = l.pendingAcks("b"); pendingAcks != nil {
		t.Errorf("another agent's event acknowledges %v", pendingAcks)
	}
	l.learn("b", "f", l.pendingAcks("a"))
	if l.noted != 20 {
		t.Error("another agent's verdict confirmed them")
	}
}

func TestTheDeliveredItemsOfAnAgentAreLimited(t *testing.T) {
	l := newLog(t)
	for n := range maxHanded + 3 {
		l.restore(&Handover{Fabric: "f", Agent: "a", Sequences: []uint64{uint64(n)}})
	}
	before := l.isDelivered("a")
	if before(2) || !before(3) || !before(maxHanded+2) || len(l.agents["a"].handed) != maxHanded {
		t.Errorf("%d are remembered", len(l.agents["a"].handed))
	}
}

func TestTheLeastRecentlyUsedAgentIsForgotten(t *testing.T) {
	l := newLog(t)
	l.restore(noted("old", 0))
	l.restore(noted("kept", 1))
	for n := range maxAgents - 2 {
		l.restore(&Handover{Fabric: "f", Agent: fmt.Sprint(n), Sequences: []uint64{1}})
	}
	l.restore(noted("kept", 2))
	l.restore(noted("new", 3))
	if l.agents["old"] != nil || l.agents["kept"] == nil || len(l.agents) != maxAgents || l.noted != 3 || l.dropped != 1 {
		t.Errorf("%d agents, %d noted, %d dropped", len(l.agents), l.noted, l.dropped)
	}
}

func TestUndeliveredVerdictsAreForgotten(t *testing.T) {
	l := newLog(t)
	for n := range maxGiven + 3 {
		l.addReceived(someEvent(n), noted("a", n))
	}
	if len(l.given) != maxGiven || len(l.order) != maxGiven || l.takeReceived(someEvent(2)) != nil || l.takeReceived(someEvent(3)) == nil || l.takeReceived(someEvent(3)) != nil {
		t.Errorf("%d are remembered", len(l.given))
	}
}

func TestPausesBetweenAttemptsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t)
		l.restore(noted("a", 1))
		var waits []time.Duration
		for range 8 {
			jobs, next, _ := l.due(time.Now())
			if jobs != nil {
				t.Fatal("due before its time")
			}
			waits = append(waits, time.Until(next))
			pass(time.Until(next))
			if jobs, _, _ = l.due(time.Now()); len(jobs["a"]) != 1 {
				t.Fatal("not due in its time")
			}
			if jobs, _, _ = l.due(time.Now().Add(time.Hour)); jobs != nil {
				t.Fatal("due while an attempt is under way")
			}
			l.recordAttempt("a", errors.New("no luck"))
		}
		for i, w := range waits[1:] {
			if most := min(ackRetry<<i, ackRetryMost); w < most*3/4 || w > most*5/4+1 {
				t.Errorf("before attempt %d it waits %v", i+2, w)
			}
		}
		l.learn("a", "f", []string{someEvent(1)})
		l.restore(noted("a", 2))
		if _, next, _ := l.due(time.Now()); time.Until(next) != ackAfter {
			t.Errorf("after a success it waits %v", time.Until(next))
		}
	})
}
