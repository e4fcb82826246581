package program

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A short process does not pay for handling signals.
func TestSignalsAreHandledAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cancelled atomic.Pointer[context.CancelFunc]
		handle := func(cancel context.CancelFunc) { cancelled.Store(&cancel) }
		ctx, cancel := contextAfter(time.Second, handle)
		defer cancel()
		<-time.After(time.Second - 1)
		if synctest.Wait(); cancelled.Load() != nil || ctx.Err() != nil {
			t.Error("it handles signals too soon")
		}
		<-time.After(1)
		if synctest.Wait(); cancelled.Load() == nil {
			t.Fatal("it does not handle signals")
		}
		if (*cancelled.Load())(); ctx.Err() == nil {
			t.Error("a signal does not end the context")
		}

		cancelled.Store(nil)
		ctx, cancel = contextAfter(time.Second, handle)
		cancel()
		<-time.After(time.Minute)
		if synctest.Wait(); cancelled.Load() != nil || ctx.Err() == nil {
			t.Error("it handles signals after its end")
		}
	})
}
