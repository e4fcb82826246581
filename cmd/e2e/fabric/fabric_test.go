package fabric_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/broker/app"
	"github.com/hookfabric/hookfabric/cmd/internal/runners"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// TestMain is also the watchdog over hooks' processes, as every program with
// command hooks is.
func TestMain(m *testing.M) {
	runners.Watchdog(os.Args)
	bustest.Main(m)
}

// stopTime is how long a fabric may take to stop at a test's end.
const stopTime = time.Minute

// fabric is a whole fabric in this process: a broker with its server, started with the text of a hooks.yaml, and
// workers.
type fabric struct {
	t      *testing.T
	dir    string // of the hooks.yaml and its programs
	broker *app.Broker
	log    *logbook
	client *client.Client
}

// start starts a broker from the text of a hooks.yaml.
func start(t *testing.T, yaml string, programs ...program) *fabric {
	t.Helper()
	f := &fabric{t: t, dir: t.TempDir(), log: newLogbook()}
	f.start(yaml, programs...)
	var err error
	f.client, err = client.Connect(t.Context(), client.Options{InProcess: f.broker, Timeout: 5 * time.Minute, Logger: slog.New(f.log)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.client.Close)
	return f
}

// start starts the fabric without a client.
func (f *fabric) start(yaml string, programs ...program) {
	t := f.t
	t.Helper()
	runtime.GC() // timers that another bubble left in a pool must not be met in this one
	runtime.GC()
	for _, p := range programs {
		f.write(p.name, p.text, 0o700)
	}
	var err error
	f.broker, err = app.New(t.Context(), app.Options{
		Config: f.write("hooks.yaml", yaml, 0o600), Data: filepath.Join(f.dir, "data"),
		Sync: time.Minute, Logger: slog.New(f.log),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopTime)
		defer cancel()
		if err := f.broker.Close(ctx); err != nil {
			t.Error(err)
		}
		bustest.Settle()
	})
}

// program is a file beside the hooks.yaml.
type program struct{ name, text string }

// script is a shell script.
func script(name, text string) program { return program{name, "#!/bin/sh\n" + text + "\n"} }

func (f *fabric) write(name, text string, mode os.FileMode) string {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// connect connects another client.
func (f *fabric) connect(name string) *nats.Conn {
	f.t.Helper()
	nc, err := f.broker.Connect(context.Background(), bus.Options{Name: name})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(nc.Close)
	return nc
}

// handlers are hooks in Go, by the name that the hooks.yaml has for them.
type handlers map[string]workers.HandlerFunc

// serve has a program of a user's own serve the pool "go", as the worker of
// that name, until the test ends. It returns its connection, to be cut.
func (f *fabric) serve(name string, hs handlers) *nats.Conn {
	f.t.Helper()
	nc := f.offer(name, hs)
	synctest.Wait()
	return nc
}

// offer is serve for tests in real time: the fabric may not have noticed yet.
func (f *fabric) offer(name string, hs handlers) *nats.Conn {
	f.t.Helper()
	return f.offerIn("go", name, hs)
}

// offerIn is offer for another pool.
func (f *fabric) offerIn(pool, name string, hs handlers) *nats.Conn {
	f.t.Helper()
	all := make(map[string]workers.Handler)
	for name, h := range hs {
		all[name] = h
	}
	return f.serveOn(f.connect(workers.ConnectionPrefix+name), pool, all)
}

// serveOn has a program serve a pool on its connection, until the test ends.
func (f *fabric) serveOn(nc *nats.Conn, pool string, all map[string]workers.Handler) *nats.Conn {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := workers.Serve(ctx, nc, pool, all); err != nil && !nc.IsClosed() {
			f.t.Error(err)
		}
	}()
	f.t.Cleanup(func() { stop(); <-ended })
	return nc
}

// does is a hook that always answers the same.
func does(r schema.Result) workers.HandlerFunc {
	return func(context.Context, *schema.Event) (schema.Result, error) { return r, nil }
}

// scenario is one sentence that must be true of the fabric.
type scenario struct {
	is  string
	run func(t *testing.T)
}

// inBubbles runs each scenario with a clock of its own, on which thirty seconds
// are nothing.
func inBubbles(t *testing.T, all []scenario) {
	for _, s := range all {
		t.Run(s.is, func(t *testing.T) { synctest.Test(t, s.run) })
	}
}

// inRealTime runs scenarios with child processes or sockets beside each other:
// a clock of one's own stands still while those are at work.
func inRealTime(t *testing.T, all []scenario) {
	t.Parallel()
	for _, s := range all {
		t.Run(s.is, func(t *testing.T) {
			t.Parallel()
			s.run(t)
		})
	}
}
