package fleet

import (
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/load"
)

func TestACallThatFailedAtOnceWaitedUntilItsDeadline(t *testing.T) {
	due := time.Unix(1000, 0)
	for took, want := range map[time.Duration]time.Duration{time.Millisecond: time.Second, 2 * time.Second: 2 * time.Second} {
		if got := waited(&load.Call{Due: due, Ended: due.Add(took)}, time.Second).Sub(due); got != want {
			t.Errorf("a call that failed after %v counts as %v, want %v", took, got, want)
		}
	}
}
