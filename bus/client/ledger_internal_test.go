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

// someEvent is the n-th event's id.
func someEvent(n int) string { return fmt.Sprintf("0199f3c1-6d1f-7e8a-9b2c-%012d", n) }

func newPage(t *testing.T) *ledger {
	t.Helper()
	l := newLedger()
	l.learn("a", "f", nil)
	return l
}

func noted(agent string, n int) *Handover {
	return &Handover{Fabric: "f", Agent: agent, Events: []string{someEvent(n)}, Sequences: []uint64{uint64(n)}}
}

func TestOfTooManyAcknowledgementsTheOldestAreDroppedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPage(t)
		for n := range maxNoted + 5 {
			l.keep(noted(fmt.Sprint("agent", n%7), n))
			pass(time.Microsecond)
		}
		_, _, dropped := l.due(time.Now())
		if dropped != 5 || l.noted != maxNoted {
			t.Errorf("%d were dropped, %d are noted", dropped, l.noted)
		}
		total := 0
		for _, a := range l.accounts {
			total += len(a.noted)
		}
		if newest := fmt.Sprint("agent", (maxNoted+4)%7); total != maxNoted || !slices.Contains(l.accounts[newest].noted, someEvent(maxNoted+4)) {
			t.Errorf("%d are noted, and the newest is not among them", total)
		}
	})
}

func pass(d time.Duration) { <-time.After(d) }

func TestAQuestionTakesAsManyAcknowledgementsAlongAsItMay(t *testing.T) {
	l := newPage(t)
	for n := range bus.MaxAcks + 20 {
		l.keep(noted("a", n))
	}
	riders := l.riders("a")
	if len(riders) != bus.MaxAcks || riders[0] != someEvent(0) {
		t.Errorf("%d ride, the first is %s", len(riders), riders[0])
	}
	l.learn("a", "f", riders)
	if riders = l.riders("a"); len(riders) != 20 || l.noted != 20 {
		t.Errorf("%d are left, %d noted", len(riders), l.noted)
	}
	if riders = l.riders("b"); riders != nil {
		t.Errorf("another agent's question acknowledges %v", riders)
	}
	l.learn("b", "f", l.riders("a"))
	if l.noted != 20 {
		t.Error("another agent's verdict confirmed them")
	}
}

func TestWhatIsRememberedOfAnAgentIsBounded(t *testing.T) {
	l := newPage(t)
	for n := range maxHanded + 3 {
		l.keep(&Handover{Fabric: "f", Agent: "a", Sequences: []uint64{uint64(n)}})
	}
	before := l.before("a")
	if before(2) || !before(3) || !before(maxHanded+2) || len(l.accounts["a"].handed) != maxHanded {
		t.Errorf("%d are remembered", len(l.accounts["a"].handed))
	}
}

func TestTheAgentNotSeenForLongestIsForgotten(t *testing.T) {
	l := newPage(t)
	l.keep(noted("old", 0))
	l.keep(noted("kept", 1))
	for n := range maxAgents - 2 {
		l.keep(&Handover{Fabric: "f", Agent: fmt.Sprint(n), Sequences: []uint64{1}})
	}
	l.keep(noted("kept", 2))
	l.keep(noted("new", 3))
	if l.accounts["old"] != nil || l.accounts["kept"] == nil || len(l.accounts) != maxAgents || l.noted != 3 || l.dropped != 1 {
		t.Errorf("%d accounts, %d noted, %d dropped", len(l.accounts), l.noted, l.dropped)
	}
}

func TestVerdictsThatNobodyHandsOverAreForgotten(t *testing.T) {
	l := newPage(t)
	for n := range maxGiven + 3 {
		l.give(someEvent(n), noted("a", n))
	}
	if len(l.given) != maxGiven || len(l.order) != maxGiven || l.take(someEvent(2)) != nil || l.take(someEvent(3)) == nil || l.take(someEvent(3)) != nil {
		t.Errorf("%d are remembered", len(l.given))
	}
}

func TestAttemptsGetRarer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPage(t)
		l.keep(noted("a", 1))
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
			l.tried("a", errors.New("no luck"))
		}
		for i, w := range waits[1:] {
			if most := min(ackRetry<<i, ackRetryMost); w < most*3/4 || w > most*5/4+1 {
				t.Errorf("before attempt %d it waits %v", i+2, w)
			}
		}
		l.learn("a", "f", []string{someEvent(1)})
		l.keep(noted("a", 2))
		if _, next, _ := l.due(time.Now()); time.Until(next) != ackAfter {
			t.Errorf("after a success it waits %v", time.Until(next))
		}
	})
}
