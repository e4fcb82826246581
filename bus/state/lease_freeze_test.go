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

func TestALeaseHasTheVersionOfTheFreezesThatABrokerApplies(t *testing.T) {
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

func TestALeaseReportsThatABrokerCannotReadItsRealm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		reader := open(t, js)
		l, _ := lease(t, open(t, js), state.Node{ID: "b1"})
		var unreadable atomic.Bool
		l.Realm(unreadable.Load)
		if err := l.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, is := range []bool{false, true, false} {
			unreadable.Store(is)
			<-time.After(4 * time.Second) // at least one renewal
			wantNodes(t, reader, state.Node{ID: "b1", RealmUnreadable: is})
		}
	})
}

// Each renewal runs the additional Confirms. If one fails while the lease exists, the broker
// continues, because others wait for it.
func TestEachRenewalRunsTheAdditionalConfirms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, hung, lapses atomic.Int64
		_, l, _ := fenced(t)
		l.Also(func(_ context.Context, lapsed bool) error {
			if asked.Add(1); lapsed {
				lapses.Add(1)
			}
			return errors.New("no leader")
		})
		l.Also(func(ctx context.Context, _ bool) error { hung.Add(1); <-ctx.Done(); return context.Cause(ctx) })
		<-time.After(time.Minute)
		if a, h := asked.Load(), hung.Load(); a < 10 || h < 10 || lapses.Load() > 0 {
			t.Errorf("%d and %d calls in a minute, after %d lapses", a, h, lapses.Load())
		}
		if !l.Fresh(time.Now()) {
			t.Error("the broker stopped answering")
		}
	})
}

// Other brokers did not wait for a broker that starts. It must not answer before all Confirms
// succeed with a proof, also those that were added after the first write of its lease.
func TestAStartingBrokerAnswersOnlyAfterAllConfirms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, bustest.JetStream(t, bustest.Start(t)))
		l, err := c.Lease(state.Node{ID: "b1"})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		said := make(chan bool, 10)
		l.Also(func(_ context.Context, lapsed bool) error { said <- lapsed; return nil })
		_, stop := watch(t, c)
		if err := l.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case lapsed := <-said:
			if !lapsed {
				t.Error("lapsed is false")
			}
		default:
			t.Error("it answers without a proof")
		}
		if err := errors.Join(l.Close(t.Context()), stop()); err != nil {
			t.Error(err)
		}
	})
}

// Other brokers did not wait for a broker whose lease has lapsed.
func TestABrokerThatWasCutOffAnswersOnlyAfterAllConfirms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l, _ := fenced(t)
		var trouble atomic.Bool
		var lapses atomic.Int64
		l.Also(func(_ context.Context, lapsed bool) error {
			switch {
			case trouble.Load():
				return errors.New("no leader")
			case lapsed:
				lapses.Add(1)
			}
			return nil
		})
		<-time.After(10 * time.Second)
		g.set(t, true)
		<-time.After(20 * time.Second)
		trouble.Store(true)
		g.set(t, false)
		for range 600 {
			<-time.After(100 * time.Millisecond)
			if l.Fresh(time.Now()) {
				t.Fatal("the broker answers with its old state")
			}
		}
		if lapses.Load() > 0 {
			t.Errorf("%d lapses before it was cut off", lapses.Load())
		}
		trouble.Store(false)
		if err := l.Wait(t.Context()); err != nil || lapses.Load() == 0 {
			t.Errorf("after %d lapses: %v", lapses.Load(), err)
		}
		<-time.After(10 * time.Second)
		if n := lapses.Load(); n != 1 {
			t.Errorf("%d lapses, of one", n)
		}
	})
}

// Other brokers stop waiting for it when its last stored lease lapses.
func TestABrokerWhoseLeaseIsNotStoredStopsAnsweringWhenItLapses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l, _ := fenced(t)
		l.Also(func(_ context.Context, lapsed bool) error {
			if lapsed {
				return errors.New("no leader")
			}
			return nil
		})
		<-time.After(10 * time.Second)
		limit(t, g.server, 1)
		start := time.Now()
		for l.Fresh(time.Now()) {
			<-time.After(10 * time.Millisecond)
		}
		if d := time.Since(start); d < 8*time.Second || d > 12*time.Second {
			t.Errorf("the broker is fresh for %v", d)
		}
	})
}
