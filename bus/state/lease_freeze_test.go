package state_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state"
)

func TestALeaseSaysWhichFreezesABrokerGoesBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		reader := open(t, js)
		l, _ := lease(t, open(t, js), state.Node{ID: "b1"})
		if err := l.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.Froze(3)
		synctest.Wait() // no time passes
		wantNodes(t, reader, state.Node{ID: "b1", Freeze: 3})
	})
}

// Each renewal confirms what else a broker must know, and one that can not have it goes
// on with what it knows.
func TestALeaseConfirmsWhatElseABrokerMustKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, hung atomic.Int64
		l, _ := lease(t, open(t, bustest.JetStream(t, bustest.Start(t))), state.Node{ID: "b1"})
		l.Also(func(context.Context) error { asked.Add(1); return errors.New("nobody leads") })
		l.Also(func(ctx context.Context) error { hung.Add(1); <-ctx.Done(); return context.Cause(ctx) })
		<-time.After(time.Minute)
		if a, h := asked.Load(), hung.Load(); a < 10 || h < 10 {
			t.Errorf("asked %d and %d times in a minute", a, h)
		}
		if !l.Fresh(time.Now()) {
			t.Error("the broker answers nothing any more")
		}
	})
}
