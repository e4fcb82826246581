package workers_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// configs opens the fabric's configuration as a broker does, and informs workers.
func configs(t *testing.T, s *server.Server) *state.Configs {
	t.Helper()
	js, err := jetstream.New(bustest.Connect(t, s, "broker"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := state.OpenConfigs(t.Context(), js, state.ConfigOptions{})
	if err != nil {
		t.Fatal(err)
	}
	agg, err := aggregator.Start(aggregator.Options{Events: js.Conn(), Configs: c, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := agg.Drain(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return c
}

func publish(t *testing.T, c *state.Configs, cfg schema.Config) {
	t.Helper()
	v, _, err := c.Propose(t.Context(), cfg, state.Proposal{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Activate(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// serve runs a user's program for the pool "p"; the returned function stops it and
// returns its error.
func serve(t *testing.T, nc *nats.Conn, handlers map[string]workers.Handler) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- workers.Serve(ctx, nc, "p", handlers) }()
	t.Cleanup(cancel)
	return func() error {
		cancel()
		return <-ended
	}
}

func TestServeFollowsTheConfigurationUntilItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		c := configs(t, s)
		nc := bustest.Connect(t, s, workers.ConnectionPrefix+"w")
		stop := serve(t, nc, map[string]workers.Handler{"yes": workers.HandlerFunc(allows)})
		a := newAsker(t, s)
		synctest.Wait()
		if m := a.request(bus.BatchMsg("hook.v1.run.p.w", batch(0))); m != nil {
			t.Errorf("before there is a configuration: %s", m.Data)
		}
		publish(t, c, config(hook("yes")))
		wantKinds(t, a.ask(batch(0)), "0:ok")
		publish(t, c, config(hook("yes"), hook("unknown")))
		b := batch(0, 1)
		b.Version = 2
		r := a.ask(b)
		wantKinds(t, r, "0:ok 1:load_error")
		if want := `this program serves no handler "unknown"`; !strings.Contains(r.Outcomes[1].Error, want) {
			t.Error(r.Outcomes[1].Error)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestServeNamesAWorkerWithoutAName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		publish(t, configs(t, s), config(hook("yes")))
		stop := serve(t, bustest.Connect(t, s, "my program"), map[string]workers.Handler{"yes": workers.HandlerFunc(allows)})
		synctest.Wait()
		r := newAsker(t, s).send(bus.BatchMsg("hook.v1.run.p", batch(0)))
		wantKinds(t, r, "0:ok")
		if len(r.Worker) != 36 {
			t.Errorf("the worker calls itself %q", r.Worker)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestServeWaitsForTheFirstBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		stop := serve(t, bustest.Connect(t, s, workers.ConnectionPrefix+"w"), map[string]workers.Handler{"yes": workers.HandlerFunc(allows)})
		<-time.After(time.Minute)
		publish(t, configs(t, s), config(hook("yes")))
		<-time.After(time.Minute)
		wantKinds(t, newAsker(t, s).ask(batch(0)), "0:ok")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestServeCanBeStoppedBeforeThereIsABroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		stop := serve(t, bustest.Connect(t, s, "w"), nil)
		synctest.Wait()
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestServeFinishesBatchesInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		publish(t, configs(t, s), config(hook("hangs")))
		end := make(chan struct{})
		stop := serve(t, bustest.Connect(t, s, workers.ConnectionPrefix+"w"), map[string]workers.Handler{"hangs": hangs(end)})
		synctest.Wait()
		reply := newAsker(t, s).async(batch(0))
		synctest.Wait()
		time.AfterFunc(5*time.Second, func() { close(end) })
		start := time.Now()
		if err := stop(); err != nil || time.Since(start) != 5*time.Second {
			t.Errorf("it stopped after %v: %v", time.Since(start), err)
		}
		wantKinds(t, <-reply, "0:ok")
	})
}

func TestServeEndsWithItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		publish(t, configs(t, s), config(hook("yes")))
		nc := bustest.Connect(t, s, workers.ConnectionPrefix+"w")
		ended := make(chan error, 1)
		go func() { ended <- workers.Serve(t.Context(), nc, "p", nil) }()
		synctest.Wait()
		nc.Close()
		if err := <-ended; !errors.Is(err, nats.ErrConnectionClosed) {
			t.Errorf("%v", err)
		}
	})
}
