package app

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A runtime that has its answer waits for the process to end, and takes one that
// does not for one that failed.
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
