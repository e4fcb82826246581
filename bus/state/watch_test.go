package state_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/embedded"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// watch watches until stop is called, which returns what Watch did.
func watch(t *testing.T, c *state.Configs) (seen <-chan schema.Config, stop func() error) {
	ch, ended := make(chan schema.Config, 100), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- c.Watch(ctx, func(cfg schema.Config) { ch <- cfg }) }()
	return ch, func() error { cancel(); return <-ended }
}

func TestWatchersSeeEveryVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := stream(t, bustest.Start(t))
		c := open(t, js)
		early, stopEarly := watch(t, c)
		synctest.Wait() // It watches now, and will see what comes.
		publish(t, c, config("c1"), 1, true)
		publish(t, c, config("c2"), 2, true)
		late, stopLate := watch(t, c)
		if got := <-late; got.Version != 2 {
			t.Errorf("the first that a late watcher sees is %d", got.Version)
		}
		publish(t, c, config("c2"), 2, false)
		publish(t, c, config("c3"), 3, true)
		for i := range 3 {
			if got := <-early; got.Version != uint64(i+1) || got.Hooks[0].Name != fmt.Sprint("c", i+1) {
				t.Errorf("version %d of %s; want %d", got.Version, got.Hooks[0].Name, i+1)
			}
		}
		if got := <-late; got.Version != 3 {
			t.Errorf("then the late watcher sees %d", got.Version)
		}
		<-time.After(time.Minute)
		if len(early)+len(late) != 0 {
			t.Error("something is seen twice")
		}
		if err := errors.Join(stopEarly(), stopLate()); err != nil {
			t.Error(err)
		}
	})
}

// TestASilentWatcherIsNoHarm takes the watcher's consumers away, as a leader
// that leaves does.
func TestASilentWatcherIsNoHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		js := stream(t, bustest.Start(t))
		c := open(t, js)
		publish(t, c, config("c1"), 1, true)
		seen, stop := watch(t, c)
		<-seen
		deleteConsumers(t, js)
		start := time.Now()
		publish(t, c, config("c2"), 2, true)
		if got := <-seen; got.Version != 2 || time.Since(start) > 6*time.Second {
			t.Errorf("version %d after %v", got.Version, time.Since(start))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func deleteConsumers(t *testing.T, js jetstream.JetStream) {
	s, err := js.Stream(t.Context(), "KV_"+state.ConfigBucket)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for name := range s.ConsumerNames(t.Context()).Name() {
		if err := s.DeleteConsumer(t.Context(), name); err != nil {
			t.Error(err)
		}
		n++
	}
	if n == 0 {
		t.Error("nobody watches")
	}
}

func TestAWatcherSurvivesJunkAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		js := stream(t, bustest.Start(t))
		c, err := state.OpenConfigs(t.Context(), js, state.ConfigOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		publish(t, c, config("c1"), 1, true)
		seen, stop := watch(t, c)
		<-seen
		kv, err := js.KeyValue(t.Context(), state.ConfigBucket)
		if err != nil {
			t.Fatal(err)
		}
		for _, junk := range []string{"{", `{"version":0}`, `{"version":9}`} {
			if _, err := kv.PutString(t.Context(), "current", junk); err != nil {
				t.Fatal(err)
			}
			<-time.After(10 * time.Second)
		}
		if _, err := kv.PutString(t.Context(), "v.10", `{"hooks":[]}`); err != nil {
			t.Fatal(err)
		}
		if _, err := kv.PutString(t.Context(), "current", `{"version":10,"kept":[10]}`); err != nil {
			t.Fatal(err)
		}
		if got := <-seen; got.Version != 10 {
			t.Errorf("version %d", got.Version)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		for _, want := range []string{"names no config version", "no such config version"} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log does not say %q:\n%s", want, log.String())
			}
		}
	})
}

func TestWatchEndsWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		js := stream(t, s)
		seen, stop := watch(t, open(t, js))
		synctest.Wait()
		js.Conn().Close()
		<-time.After(10 * time.Second)
		if err := stop(); !errors.Is(err, nats.ErrConnectionClosed) || len(seen) != 0 {
			t.Errorf("Watch ends with %v", err)
		}
	})
}

func TestAWatcherOutlivesItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first, err := embedded.Start(t.Context(), embedded.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		var where moving
		where.Store(first)
		js := wherever(t, &where)
		c := open(t, js)
		publish(t, c, config("c1"), 1, true)
		seen, stop := watch(t, c)
		<-seen
		if err := first.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		second := bustest.StartWith(t, embedded.Options{Dir: dir})
		where.Store(second)
		publish(t, open(t, stream(t, second)), config("c2"), 2, true)
		start := time.Now()
		if got := <-seen; got.Version != 2 || time.Since(start) > 11*time.Second {
			t.Errorf("version %d after %v", got.Version, time.Since(start))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// moving is a server that another one replaces.
type moving struct {
	atomic.Pointer[embedded.Server]
}

func (m *moving) InProcessConn() (net.Conn, error) { return m.Load().InProcessConn() }

func wherever(t *testing.T, m *moving) jetstream.JetStream {
	t.Helper()
	nc, err := bus.Connect(t.Context(), bus.Options{InProcess: m, Name: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}
