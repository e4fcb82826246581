package program

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Only who lives for longer listens for signals, and who has ended begins no more.
func TestSignalsAreHeededAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heeded context.CancelFunc
		heed := func(cancel context.CancelFunc) { heeded = cancel }
		ctx, cancel := contextAfter(time.Second, heed)
		defer cancel()
		<-time.After(time.Second - 1)
		if synctest.Wait(); heeded != nil || ctx.Err() != nil {
			t.Error("it listens too soon")
		}
		<-time.After(1)
		if synctest.Wait(); heeded == nil {
			t.Fatal("it does not listen")
		}
		if heeded(); ctx.Err() == nil {
			t.Error("a signal ends nothing")
		}

		heeded = nil
		ctx, cancel = contextAfter(time.Second, heed)
		cancel()
		<-time.After(time.Minute)
		if synctest.Wait(); heeded != nil || ctx.Err() == nil {
			t.Error("it listens after its end")
		}
	})
}
