package state_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
)

// serving serves c as a broker until stop is called.
func serving(t *testing.T, s *server.Server, c *state.Configs) (stop func()) {
	t.Helper()
	agg, err := aggregator.Start(aggregator.Options{Events: bustest.Connect(t, s, "broker"), Configs: c, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		if err := agg.Drain(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	synctest.Wait() // until the server has the subscription
	return stop
}

// follow is watch through brokers.
func follow(t *testing.T, nc *nats.Conn, log *bytes.Buffer) (seen <-chan state.Update, stop func() error) {
	t.Helper()
	ch, ended := make(chan state.Update, 100), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		ended <- state.Follow(ctx, nc, slog.New(slog.NewTextHandler(log, nil)), func(u state.Update) { ch <- u })
	}()
	return ch, func() error { cancel(); return <-ended }
}

func TestFollowSeesTheSameUpdatesAsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		c := open(t, bustest.JetStream(t, s))
		serving(t, s, c)
		seen, stop := follow(t, bustest.Connect(t, s, "worker"), new(bytes.Buffer))
		sees(t, seen, "nothing, keep []")
		propose(t, c, "a", state.Proposal{})
		first := sees(t, seen, "nothing, then 1 a, keep [1]") // without time passing
		activate(t, c, 1)
		second := sees(t, seen, "1 a, keep [1]")
		if first.Candidate != second.Active || second.Active.Fabric != c.FabricID() || second.Fabric != c.FabricID() {
			t.Errorf("the candidate was read again, or is of the fabric %q", second.Active.Fabric)
		}
		propose(t, c, "b", state.Proposal{})
		sees(t, seen, "1 a, then 2 b, keep [2 1]")
		if err := c.Withdraw(t.Context(), 2); err != nil {
			t.Error(err)
		}
		sees(t, seen, "1 a, keep [1]")
		<-time.After(time.Minute)
		sees(t, seen)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestALargeVersionIsReadInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		c := open(t, bustest.JetStream(t, s))
		serving(t, s, c)
		big := config("big")
		big.Hooks[0].When = strings.Repeat("x", state.MaxConfig-500)
		publish(t, c, big, 1, true)
		seen, stop := follow(t, bustest.Connect(t, s, "worker"), new(bytes.Buffer))
		if last := sees(t, seen, "1 big, keep [1]"); last.Active.Hooks[0].When != big.Hooks[0].When {
			t.Errorf("it has %d bytes of %d", len(last.Active.Hooks[0].When), len(big.Hooks[0].When))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestWithoutBrokersTheActiveVersionStaysAndALineIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		c := open(t, bustest.JetStream(t, s))
		publish(t, c, config("a"), 1, true)
		end := serving(t, s, c)
		log := new(bytes.Buffer)
		seen, stop := follow(t, bustest.Connect(t, s, "worker"), log)
		sees(t, seen, "1 a, keep [1]")
		end()
		publish(t, c, config("b"), 2, true)
		<-time.After(time.Minute)
		sees(t, seen)
		if n := strings.Count(log.String(), "cannot follow the configuration"); n != 1 || !strings.Contains(log.String(), "no broker serves") || !strings.Contains(log.String(), "version=1") {
			t.Errorf("%d lines:\n%s", n, log)
		}
		serving(t, s, c)
		<-time.After(1100 * time.Millisecond) // there is no notification
		sees(t, seen, "2 b, keep [2 1]")
		if !strings.Contains(log.String(), "follows the configuration again") {
			t.Error(log)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAnotherBrokerAnswersInPlaceOfOneThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		c := open(t, bustest.JetStream(t, s))
		publish(t, c, config("a"), 1, true)
		var asked atomic.Int32
		hangs, err := bustest.Connect(t, s, "hangs").QueueSubscribe("hook.v1.ctl.*.*", "aggregators", func(*nats.Msg) { asked.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // until the server has the subscription
		log := new(bytes.Buffer)
		seen, stop := follow(t, bustest.Connect(t, s, "worker"), log)
		<-time.After(3900 * time.Millisecond)
		synctest.Wait()
		if sees(t, seen); asked.Load() != 10 {
			t.Errorf("%d requests in 4 s", asked.Load())
		}
		<-time.After(1600 * time.Millisecond)
		synctest.Wait()
		if !strings.Contains(log.String(), "no broker answered") {
			t.Error(log)
		}
		if err := hangs.Unsubscribe(); err != nil {
			t.Fatal(err)
		}
		serving(t, s, c)
		<-time.After(3 * time.Second)
		sees(t, seen, "1 a, keep [1]")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestFollowNoticesARecreatedFabric(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		js := bustest.JetStream(t, s)
		c := open(t, js)
		serving(t, s, c)
		publish(t, c, config("old"), 1, true)
		log := new(bytes.Buffer)
		seen, stop := follow(t, bustest.Connect(t, s, "worker"), log)
		old := sees(t, seen, "1 old, keep [1]")
		if err := js.DeleteKeyValue(t.Context(), state.ConfigBucket); err != nil {
			t.Fatal(err)
		}
		recreated, err := state.OpenConfigs(t.Context(), js, state.ConfigOptions{})
		for range 100 { // the server may still be removing the files
			if err == nil {
				break
			}
			<-time.After(10 * time.Millisecond)
			recreated, err = state.OpenConfigs(t.Context(), js, state.ConfigOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		publish(t, recreated, config("new"), 1, true)
		<-time.After(11 * time.Second)
		got, last := received(seen)
		if len(got) == 0 || got[len(got)-1] != "1 new, keep [1]" || last.Fabric != recreated.FabricID() || last.Active.Fabric != recreated.FabricID() || last.Fabric == old.Fabric {
			t.Errorf("%q of %s, then %s", got, old.Fabric, last.Fabric)
		}
		if !strings.Contains(log.String(), "recreated") {
			t.Error(log)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestFollowReportsAnUnreadableVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		js := bustest.JetStream(t, s)
		c := open(t, js)
		serving(t, s, c)
		seen, stop := follow(t, bustest.Connect(t, s, "worker"), new(bytes.Buffer))
		sees(t, seen, "nothing, keep []")
		put(t, js, "current", `{"version":0,"last":1,"proposed":{"version":1}}`)
		<-time.After(10 * time.Second)
		if bad := sees(t, seen, "nothing, then the bad 1, keep [1]").Bad; bad == nil || !errors.Is(bad.Err, state.ErrNoVersion) {
			t.Errorf("a missing version: %+v", bad)
		}
		put(t, js, "v.1", "junk")
		<-time.After(10 * time.Second)
		if bad := sees(t, seen, "nothing, then the bad 1, keep [1]").Bad; bad == nil || !strings.Contains(bad.Err.Error(), "config version 1 cannot be read") {
			t.Errorf("a version that is junk: %+v", bad)
		}
		put(t, js, "v.1", `{"hooks":[{"name":"x"}]}`)
		<-time.After(10 * time.Second)
		sees(t, seen, "nothing, then 1 x, keep [1]")
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestFollowingEndsWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc := bustest.Connect(t, bustest.Start(t), "worker")
		_, stop := follow(t, nc, new(bytes.Buffer))
		synctest.Wait()
		nc.Close()
		<-time.After(2 * time.Second)
		if err := stop(); !errors.Is(err, nats.ErrConnectionClosed) {
			t.Errorf("Follow ends with %v", err)
		}
	})
}

func TestTellAnswersOnlyWithExistingParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, bustest.JetStream(t, bustest.Start(t)))
		publish(t, c, config("a"), 1, true)
		whole, err := c.Tell(t.Context(), &schema.FollowRequest{Fabric: c.FabricID(), Version: 1})
		if err != nil {
			t.Fatal(err)
		}
		size := whole.(schema.FetchAnswer).Size
		for name, c2 := range map[string]struct {
			req  schema.FollowRequest
			want error
		}{
			"its end":              {schema.FollowRequest{Fabric: c.FabricID(), Version: 1, Offset: size}, nil},
			"beyond its end":       {schema.FollowRequest{Fabric: c.FabricID(), Version: 1, Offset: size + 1}, state.ErrNoPart},
			"before its beginning": {schema.FollowRequest{Fabric: c.FabricID(), Version: 1, Offset: -1}, state.ErrNoPart},
			"another version":      {schema.FollowRequest{Fabric: c.FabricID(), Version: 2}, state.ErrNoVersion},
			"another fabric's":     {schema.FollowRequest{Fabric: "another", Version: 1}, state.ErrMoved},
		} {
			if got, err := c.Tell(t.Context(), &c2.req); !errors.Is(err, c2.want) || c2.want == nil && len(got.(schema.FetchAnswer).Data) > 0 {
				t.Errorf("%s: %s, %v", name, fmt.Sprint(got), err)
			}
		}
	})
}
