package program

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Only who lives for longer listens for signals, and who has ended begins no more.
func TestSignalsAreHeededAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heeded atomic.Pointer[context.CancelFunc]
		heed := func(cancel context.CancelFunc) { heeded.Store(&cancel) }
		ctx, cancel := contextAfter(time.Second, heed)
		defer cancel()
		<-time.After(time.Second - 1)
		if synctest.Wait(); heeded.Load() != nil || ctx.Err() != nil {
			t.Error("it listens too soon")
		}
		<-time.After(1)
		if synctest.Wait(); heeded.Load() == nil {
			t.Fatal("it does not listen")
		}
		if (*heeded.Load())(); ctx.Err() == nil {
			t.Error("a signal ends nothing")
		}

		heeded.Store(nil)
		ctx, cancel = contextAfter(time.Second, heed)
		cancel()
		<-time.After(time.Minute)
		if synctest.Wait(); heeded.Load() != nil || ctx.Err() == nil {
			t.Error("it listens after its end")
		}
	})
}
