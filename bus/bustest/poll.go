package bustest

import (
	"fmt"
	"testing"
	"time"
)

// Patience is how long tests in real time wait for what usually takes milliseconds, on a busy machine.
const Patience = time.Minute

// pollEvery is the time between two polls.
const pollEvery = 5 * time.Millisecond

// Eventually polls until ok returns true, and ends the test if that takes longer than [Patience].
func Eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	if err := Poll(what, ok); err != nil {
		tb.Fatal(err)
	}
}

// Poll is [Eventually] for goroutines that must not end the test.
func Poll(what string, ok func() bool) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	late := time.NewTimer(Patience)
	defer late.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-late.C:
			return fmt.Errorf("not within %v: %s", Patience, what)
		}
	}
	return nil
}
