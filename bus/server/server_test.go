package server_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/schema"
	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func TestMain(m *testing.M) { bustest.Main(m) }

func TestAServerInABubbleServesItsProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		if u := s.ClientURL(); u != "" {
			t.Errorf("ClientURL = %q although nothing listens", u)
		}
		nc := bustest.Connect(t, s, "responder")
		if nc.MaxPayload() != schema.MaxPayload {
			t.Errorf("MaxPayload = %d", nc.MaxPayload())
		}
		if _, err := nc.Subscribe("slow", func(m *nats.Msg) {
			time.AfterFunc(30*time.Second, func() { _ = m.Respond([]byte("done")) })
		}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := nc.FlushWithContext(ctx); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		m, err := bustest.Connect(t, s, "asker").RequestWithContext(ctx, "slow", nil)
		if err != nil || string(m.Data) != "done" || time.Since(start) < 30*time.Second {
			t.Errorf("answer %v, %v after %v", m, err, time.Since(start))
		}
	})
}

func TestStreamsAreBoundedAndExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.StartWith(t, server.Options{MaxMemory: 1 << 20, MaxStore: 8 << 20})
		js, err := jetstream.New(bustest.Connect(t, s, "js"))
		if err != nil {
			t.Fatal(err)
		}
		kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b", MaxBytes: 4 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kv.PutString(t.Context(), "k", "v"); err != nil {
			t.Error(err)
		}
		_, err = js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "c", MaxBytes: 5 << 20})
		if err == nil {
			t.Error("a bucket beyond the server's store is made")
		}
	})
}

func TestLostClientsAreNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := bustest.Start(t)
		sys, err := s.ConnectSystem(t.Context(), bus.Options{Name: "broker system"})
		if err != nil {
			t.Fatal(err)
		}
		defer sys.Close()
		gone := make(chan string, 10)
		ctx, stop := context.WithCancel(t.Context())
		if err := s.WatchDisconnects(ctx, sys, func(l server.Left) { gone <- l.Name }); err != nil {
			t.Fatal(err)
		}
		worker, err := s.Connect(t.Context(), bus.Options{Name: "worker 1"})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		worker.Close()
		if name := <-gone; name != "worker 1" || time.Since(start) > 20*time.Millisecond {
			t.Errorf("%q is gone after %v", name, time.Since(start))
		}
		stop()
		synctest.Wait()
		bustest.Connect(t, s, "worker 2").Close()
		synctest.Wait()
		if len(gone) != 0 {
			t.Errorf("%q is reported after the end", <-gone)
		}
	})
}

func TestTheEventIsTheServers(t *testing.T) {
	e := natsserver.DisconnectEventMsg{Client: natsserver.ClientInfo{Name: "w", Kind: "Client"}}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ data, want string }{
		"a client":      {string(data), "w"},
		"a stop":        {`{"client":{"name":"w","kind":"Client"},"reason":"` + natsserver.ServerShutdown.String() + `"}`, ""},
		"a leaf node":   {`{"client":{"name":"w","kind":"Leafnode"}}`, ""},
		"no name":       {`{"client":{"kind":"Client"}}`, ""},
		"not even JSON": {`{`, ""},
	} {
		if got, ok := server.WhoLeft([]byte(c.data), false); got.Name != c.want || ok != (c.want != "") || got.Pools != nil {
			t.Errorf("%s: %+v, %t", name, got, ok)
		}
	}
}

// TestTheTagsDecideWhichDisconnectsCount where everybody has to say who they are.
func TestTheTagsDecideWhichDisconnectsCount(t *testing.T) {
	for name, c := range map[string]struct {
		tags  []string
		told  bool
		pools []string
	}{
		"a worker, in its pools":              {[]string{"role:worker", "pool:a", "poolx:42"}, true, []string{"a", "B"}},
		"a worker of all pools, in all":       {[]string{"role:worker", "pool:*"}, true, nil},
		"a worker whose pools are not known":  {[]string{"role:worker"}, false, nil},
		"a worker whose pools cannot be read": {[]string{"role:worker", "poolx:?"}, false, nil},
		"a broker, in all":                    {[]string{"role:broker"}, true, nil},
		"an agent whose tags name a pool":     {[]string{"role:agent", "pool:a"}, false, nil},
		"a client without tags":               {nil, false, nil},
	} {
		data, err := json.Marshal(natsserver.DisconnectEventMsg{Client: natsserver.ClientInfo{Name: "w", Kind: "Client", Tags: c.tags}})
		if err != nil {
			t.Fatal(err)
		}
		if got, told := server.WhoLeft(data, true); told != c.told || !slices.Equal(got.Pools, c.pools) {
			t.Errorf("%s: %+v, %t", name, got, told)
		}
	}
}

func TestAListeningServer(t *testing.T) {
	s := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0"})
	nc, err := bus.Connect(t.Context(), bus.Options{URL: s.ClientURL(), Name: "outside"})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := bus.Connect(t.Context(), bus.Options{URL: s.ClientURL(), User: "system", Password: "guess"}); err == nil {
		t.Error("a guessed password opens the system account")
	}
	if _, err := nc.SubscribeSync("$SYS.>"); err != nil {
		t.Fatal(err)
	}
	addr := strings.TrimPrefix(s.ClientURL(), "nats://")
	_, err = server.Start(t.Context(), server.Options{Dir: t.TempDir(), Listen: addr})
	wantError(t, err, "is in use")
}

func TestADirectoryHasOneServerAndKeepsItsData(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	first, err := server.Start(t.Context(), server.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	_, err = server.Start(t.Context(), server.Options{Dir: dir})
	wantError(t, err, "another broker (process ")
	put(t, first)
	for range 2 {
		if err := first.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	second := bustest.StartWith(t, server.Options{Dir: dir})
	js, err := jetstream.New(bustest.Connect(t, second, "reader"))
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	if e, err := kv.Get(t.Context(), "k"); err != nil || string(e.Value()) != "v" {
		t.Errorf("after the restart: %v, %v", e, err)
	}
}

func put(t *testing.T, s *server.Server) {
	js, err := jetstream.New(bustest.Connect(t, s, "writer"))
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.PutString(t.Context(), "k", "v"); err != nil {
		t.Fatal(err)
	}
}

func TestStartRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    server.Options
		want string
	}{
		"no directory":            {server.Options{}, "needs a data directory"},
		"a file as the directory": {server.Options{Dir: file}, "cannot create"},
		"all interfaces":          {server.Options{Dir: "x", Listen: "0.0.0.0:4222"}, "credentials and TLS"},
		"no host":                 {server.Options{Dir: "x", Listen: ":4222"}, "credentials and TLS"},
		"IPv6 for everybody":      {server.Options{Dir: "x", Listen: "[::]:4222"}, "credentials and TLS"},
		"a host name":             {server.Options{Dir: "x", Listen: "example.org:4222"}, "credentials and TLS"},
		"no port":                 {server.Options{Dir: "x", Listen: "127.0.0.1"}, "such as 127.0.0.1:4222"},
		"a port that is a word":   {server.Options{Dir: "x", Listen: "127.0.0.1:nats"}, "use a number"},
		"a port beyond all":       {server.Options{Dir: "x", Listen: "127.0.0.1:70000"}, "use a number"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := server.Start(t.Context(), c.o)
			wantError(t, err, c.want)
		})
	}
}

func TestARefusedServerLeavesTheDirectoryFree(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	dir := t.TempDir()
	_, err = server.Start(t.Context(), server.Options{Dir: dir, Listen: l.Addr().String()})
	wantError(t, err, "is in use")
	bustest.StartWith(t, server.Options{Dir: dir})
}

func TestAStoreThatCannotBeMadeIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nats"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := server.Start(t.Context(), server.Options{Dir: dir})
	wantError(t, err, "did not start")
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v; want one with %q", err, want)
	}
}
