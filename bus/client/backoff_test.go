package client_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

func TestAfterSilenceTheNextEventWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, client.Options{})
		var awake atomic.Bool
		f.serve(func(q *question) {
			if awake.Load() {
				q.answer(schema.Allow, "")
			}
		})
		if _, err := f.ask(time.Minute); !errors.Is(err, client.ErrUnanswered) {
			t.Fatal(err)
		}
		awake.Store(true)
		asked := func(within time.Duration) time.Duration {
			start := time.Now()
			if _, err := f.ask(within); err != nil {
				t.Error(err)
			}
			return time.Since(start)
		}
		if took := asked(time.Minute); took < 500*time.Millisecond || took > 1500*time.Millisecond {
			t.Errorf("after silence it took %v", took)
		}
		if took := asked(time.Minute); took > 0 {
			t.Errorf("after an answer it took %v", took)
		}
		awake.Store(false)
		if _, err := f.ask(time.Minute); !errors.Is(err, client.ErrUnanswered) {
			t.Fatal(err)
		}
		awake.Store(true)
		if took := asked(time.Second); took > 250*time.Millisecond {
			t.Errorf("of a second that is left it took %v", took)
		}
	})
}
