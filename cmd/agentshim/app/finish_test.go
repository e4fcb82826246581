package app

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A runtime waits for the end of a process that has answered, and takes one that does not
// end for a failed one.
func TestNothingHoldsUpAProcessThatHasAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, timeout := range []time.Duration{100 * time.Millisecond, time.Minute} {
			h := &hook{timeout: timeout, began: time.Now()}
			hangs := make(chan struct{})
			h.finish(func() { <-hangs })
			if time.Since(h.began) >= timeout {
				t.Errorf("it lives for %s", time.Since(h.began))
			}
			close(hangs)
		}
		var stderr bytes.Buffer
		h := &hook{timeout: time.Minute, began: time.Now(), stderr: &stderr}
		h.finish(func() { panic("broken") })
		if !strings.Contains(stderr.String(), "failed after the answer was written: broken") {
			t.Errorf("it said %q", &stderr)
		}
	})
}
