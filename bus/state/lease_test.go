package state_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go/jetstream"
)

// limit changes the size limit of the configuration's stream.
func limit(t *testing.T, s *server.Server, bytes int64) {
	t.Helper()
	js := bustest.JetStream(t, s)
	cfg := info(t, js).Config
	cfg.MaxBytes = bytes
	if _, err := js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
}

func info(t *testing.T, js jetstream.JetStream) *jetstream.StreamInfo {
	t.Helper()
	s, err := js.Stream(t.Context(), "KV_"+state.ConfigBucket)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo()
}

// lease takes a lease for a broker that watches c, which ends with the test.
func lease(t *testing.T, c *state.Configs, n state.Node) (*state.Lease, <-chan state.Update) {
	t.Helper()
	seen, stop := watch(t, c)
	l, err := c.Lease(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = l.Close(ctx) // its server may have stopped
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return l, seen
}

// wantNodes checks which brokers have a lease.
func wantNodes(t *testing.T, c *state.Configs, want ...state.Node) {
	t.Helper()
	got, err := c.Nodes(t.Context())
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" || err != nil {
		t.Errorf("%v\n%s", err, d)
	}
}

func TestALeaseHasTheVersionsOfABroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := bustest.JetStream(t, bustest.Start(t))
		c, reader := open(t, js), open(t, js)
		wantNodes(t, reader)
		me := state.Node{ID: "b 1", Instance: "i1", Embedded: true}
		l, _ := lease(t, c, me)
		synctest.Wait()
		wantNodes(t, reader, me)
		me.Active, me.Candidate = 3, &schema.Candidate{Version: 4, LoadErrors: map[string]string{"h": "no such program"}}
		l.Report(3, &schema.Candidate{Version: 4, LoadErrors: map[string]string{"h": "no such program"}})
		synctest.Wait() // without time passing
		wantNodes(t, reader, me)
		<-time.After(time.Minute)
		other := state.Node{ID: "a"}
		lease(t, open(t, js), other)
		synctest.Wait()
		wantNodes(t, reader, other, me)
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wantNodes(t, reader, other)
		if err := l.Wait(t.Context()); l.Fresh(time.Now()) || err == nil || !strings.Contains(err.Error(), "ended its lease") {
			t.Errorf("a closed lease: %v", err)
		}
		<-time.After(time.Hour)
		wantNodes(t, reader, other)
	})
}

func TestABrokerWithoutAnIDGetsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if _, err := open(t, bustest.JetStream(t, bustest.Start(t))).Lease(state.Node{}); err == nil {
			t.Error("there is a lease without an id")
		}
	})
}

// fenced returns a broker with a lease behind a gate, and a reader outside it.
func fenced(t *testing.T) (g *gate, l *state.Lease, reader *state.Configs) {
	t.Helper()
	g = &gate{server: bustest.Start(t)}
	l, _ = lease(t, open(t, jetStreamAt(t, g)), state.Node{ID: "b1"})
	if err := l.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return g, l, open(t, bustest.JetStream(t, g.server))
}

func TestABrokerThatIsCutOffStopsBeforeItsLeaseLapses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l, reader := fenced(t)
		<-time.After(time.Minute)
		start := time.Now()
		g.set(t, true)
		for l.Fresh(time.Now()) {
			wantNodes(t, reader, state.Node{ID: "b1"})
			<-time.After(100 * time.Millisecond)
		}
		if d := time.Since(start); d < 8*time.Second || d > 13*time.Second {
			t.Errorf("the broker is fresh for %v", d)
		}
		wantNodes(t, reader, state.Node{ID: "b1"}) // other brokers wait longer
		<-time.After(7 * time.Second)
		wantNodes(t, reader)
		<-time.After(time.Hour)
		wantNodes(t, reader)
		g.set(t, false)
		if err := l.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		wantNodes(t, reader, state.Node{ID: "b1"})
	})
}

func TestABrokerThatReconnectsIsFreshWithTheActiveVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{server: bustest.Start(t)}
		reader := open(t, bustest.JetStream(t, g.server))
		publish(t, reader, config("a"), 1, true)
		l, seen := lease(t, open(t, jetStreamAt(t, g)), state.Node{ID: "b1"})
		if err := l.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		sees(t, seen, "1 a, keep [1]")
		g.set(t, true)
		publish(t, reader, config("b"), 2, true)
		publish(t, reader, config("c"), 3, true)
		<-time.After(time.Minute)
		g.set(t, false)
		const crowd = 50
		var all sync.WaitGroup
		before := info(t, bustest.JetStream(t, g.server)).State.LastSeq
		for range crowd {
			all.Go(func() {
				if err := l.Wait(t.Context()); err != nil || len(seen) != 1 {
					t.Errorf("fresh with %d updates: %v", len(seen), err)
				}
			})
		}
		all.Wait()
		if n := info(t, bustest.JetStream(t, g.server)).State.LastSeq - before; n > 3 {
			t.Errorf("%d renewals for concurrent waits", n)
		}
		seesActive(t, seen, "3 c, keep [3 2 1]")
	})
}

func TestWaitingForALeaseEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l, _ := fenced(t)
		g.set(t, true)
		<-time.After(time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "to be confirmed") {
			t.Errorf("while cut off: %v", err)
		}
		g.set(t, false)
	})
}

// The stream's limit stands for a full disk.
func TestALeaseStaysFreshWhileTheLeaderCannotWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l, _ := fenced(t)
		limit(t, g.server, 1)
		<-time.After(time.Minute)
		if !l.Fresh(time.Now()) {
			t.Error("not fresh, although the leader returns the active version")
		}
		if l.Stored() {
			t.Error("a lease is stored in a full stream")
		}
		start := time.Now()
		g.set(t, true)
		for l.Fresh(time.Now()) {
			<-time.After(10 * time.Millisecond)
		}
		if d := time.Since(start); d < time.Second || d > 4*time.Second {
			t.Errorf("the broker is fresh for %v", d)
		}
		limit(t, g.server, 1<<20)
		g.set(t, false)
		if err := l.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestALeaseIsNotFreshWithoutAWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, bustest.JetStream(t, bustest.Start(t)))
		l, err := c.Lease(state.Node{ID: "b1"})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		if l.Fresh(time.Now()) {
			t.Error("fresh without a watch")
		}
		if !l.Stored() {
			t.Error("a written lease counts as not stored")
		}
		wantNodes(t, c, state.Node{ID: "b1"})
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// BenchmarkFresh is on the path of every call.
func BenchmarkFresh(b *testing.B) {
	s := bustest.Start(b)
	js, err := jetstream.New(bustest.Connect(b, s, b.Name()))
	if err != nil {
		b.Fatal(err)
	}
	c, err := state.OpenConfigs(b.Context(), js, state.ConfigOptions{})
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(b.Context())
	go func() { ended <- c.Watch(ctx, func(state.Update) {}) }()
	l, err := c.Lease(state.Node{ID: "b1"})
	if err != nil {
		b.Fatal(err)
	}
	if err := l.Wait(ctx); err != nil {
		b.Fatal(err)
	}
	now := time.Now()
	for b.Loop() {
		if !l.Fresh(now) {
			b.Fatal("not fresh")
		}
	}
	cancel()
	if err := errors.Join(l.Close(b.Context()), <-ended); err != nil {
		b.Error(err)
	}
}
