package server_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/bus/state/kv"
)

// member are the options of one server of a cluster.
func member(t *testing.T, routes []string, i int) server.Options {
	return server.Options{
		Dir: t.TempDir(), Listen: "127.0.0.1:0", SyncInterval: time.Minute,
		Cluster: &server.Cluster{Name: "c", Server: fmt.Sprint("n", i), Listen: routes[i], Routes: routes},
	}
}

// startAll starts servers that wait for each other.
func startAll(t *testing.T, all []server.Options) []*server.Server {
	t.Helper()
	servers := make([]*server.Server, len(all))
	for i, o := range all {
		s, err := server.Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		servers[i] = s
	}
	t.Cleanup(func() {
		var ends sync.WaitGroup
		for _, s := range servers {
			ends.Go(func() { _ = s.Close(context.Background()) })
		}
		ends.Wait()
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, s := range servers {
		if err := s.Await(ctx, len(all), func(waiting string) { t.Log(waiting) }); err != nil {
			t.Fatal(err)
		}
	}
	return servers
}

// Three servers keep one bucket, tell each other of clients that are lost, and know
// what is listened to elsewhere.
func TestServersAreOneCluster(t *testing.T) {
	t.Parallel()
	ca := bustest.NewAuthority(t, "ours")
	routes := bustest.FreeAddresses(t, 3)
	var all []server.Options
	for i := range routes {
		o := member(t, routes, i)
		o.TLS, o.Cluster.CA, o.Cluster.Secret = ca.Issue(t, o.Cluster.Server), ca.File, "a secret that is long enough"
		all = append(all, o)
	}
	servers := startAll(t, all)
	js, err := jetstream.New(bustest.Connect(t, servers[0], "writer"))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range [][2]int{{1, 1}, {3, 3}, {1, 3}} { // more are made, and never less
		if _, err := kv.Open(t.Context(), js, jetstream.KeyValueConfig{Bucket: "b", Replicas: step[0]}, 0); err != nil {
			t.Fatal(err)
		}
		s, err := js.Stream(t.Context(), "KV_b")
		if err != nil || s.CachedInfo().Config.Replicas != step[1] {
			t.Fatalf("with %d replicas: %+v, %v", step[0], s, err)
		}
	}
	sys, err := servers[0].ConnectSystem(t.Context(), bus.Options{Name: "system"})
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close()
	var gone atomic.Pointer[string]
	if err := servers[0].WatchDisconnects(t.Context(), sys, func(l server.Left) { gone.Store(&l.Name) }); err != nil {
		t.Fatal(err)
	}
	connect := func() *nats.Conn {
		nc, err := bus.Connect(t.Context(), bus.Options{URL: servers[1].ClientURL(), TLS: certs.Files{CA: ca.File}, Name: "worker 1"})
		if err != nil {
			t.Fatal(err)
		}
		return nc
	}
	nc := connect()
	if _, err := nc.SubscribeSync("somewhere"); err != nil {
		t.Fatal(err)
	}
	if err := flush(t, nc); err != nil {
		t.Fatal(err)
	}
	bustest.Eventually(t, "the others know the subscription", func() bool { return servers[2].Interest("somewhere") })
	nc.Close()
	bustest.Eventually(t, "a server hears of a client that left another one", func() bool {
		connect().Close() // the other server may not have known of the watch before
		return gone.Load() != nil
	})
	if name := *gone.Load(); name != "worker 1" {
		t.Errorf("%q is gone", name)
	}
}

// A server without the secret is not let in, and says what may be wrong.
func TestAStrangerIsNotLetIn(t *testing.T) {
	t.Parallel()
	routes := bustest.FreeAddresses(t, 2)
	one, two := member(t, routes, 0), member(t, routes, 1)
	one.Cluster.Secret, two.Cluster.Secret = "the secret of the cluster", "another secret entirely"
	for _, o := range []server.Options{one, two} {
		s, err := server.Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close(context.Background()) }()
		want := "no server answers at " + routes[1]
		if o.Cluster.Server == "n1" {
			want = "refuses this one; check that --cluster-name, --cluster-secret"
		}
		bustest.Eventually(t, "it says: "+want, func() bool { return strings.Contains(waits(t, s).Error(), want) })
	}
}

// waits returns the error of a server that waits for others until a deadline.
func waits(t *testing.T, s *server.Server) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err := s.Await(ctx, 0, func(string) {})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("it does not wait: %v", err)
	}
	return err
}

// A data directory stays with its server, and with its cluster.
func TestADirectoryIsOneServers(t *testing.T) {
	routes := bustest.FreeAddresses(t, 2)
	o := member(t, routes, 0)
	o.Cluster.Server = ""
	begin := func(o server.Options) (string, error) {
		s, err := server.Start(t.Context(), o)
		if err != nil {
			return "", err
		}
		return s.Name(), s.Close(context.Background())
	}
	first, err := begin(o)
	if err != nil || first == "" {
		t.Fatal(first, err)
	}
	if again, err := begin(o); err != nil || again != first {
		t.Errorf("it is called %q, and was %q: %v", again, first, err)
	}
	alone := server.Options{Dir: o.Dir, Listen: "127.0.0.1:0"}
	_, err = begin(alone)
	wantError(t, err, "belongs to a server of the cluster c")
	for field, want := range map[string]string{"other": "belongs to the server " + first, "": "belongs to a server of the cluster c, not d"} {
		wrong := o
		cluster := *o.Cluster
		wrong.Cluster = &cluster
		if cluster.Server = field; field == "" {
			cluster.Name = "d"
		}
		_, err = begin(wrong)
		wantError(t, err, want)
	}
	own := server.Options{Dir: t.TempDir(), SyncInterval: time.Minute}
	s, err := server.Start(t.Context(), own)
	if err != nil {
		t.Fatal(err)
	}
	put(t, s)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	o.Dir = own.Dir
	_, err = begin(o)
	wantError(t, err, "belongs to a single server")
}

func TestInvalidClusterOptionsAreErrors(t *testing.T) {
	for want, change := range map[string]func(*server.Options){
		"use letters, digits":            func(o *server.Options) { o.Cluster.Name = "a b" },
		"--cluster-listen":               func(o *server.Options) { o.Cluster.Listen = "" },
		"--routes":                       func(o *server.Options) { o.Cluster.Routes = nil },
		"needs an address for clients":   func(o *server.Options) { o.Listen = "" },
		"begins with http://":            func(o *server.Options) { o.Cluster.Routes = []string{"http://h:1"} },
		"--cluster-secret":               func(o *server.Options) { o.Cluster.Routes = []string{"nats-route://u:p@h:1"} },
		"is not an address to listen on": func(o *server.Options) { o.Cluster.Routes = []string{"h"} },
		"has 5 characters":               func(o *server.Options) { o.Cluster.Secret = "short" },
		"could join the cluster":         func(o *server.Options) { o.Cluster.Listen = "0.0.0.0:6222" },
		"need TLS": func(o *server.Options) {
			o.Cluster.Listen, o.Cluster.Secret = "0.0.0.0:6222", "a secret that is long enough"
		},
		"without spaces and wildcard": func(o *server.Options) { o.Cluster.Server = "a *" },
	} {
		o := member(t, []string{"127.0.0.1:0", "127.0.0.1:1"}, 0)
		change(&o)
		s, err := server.Start(t.Context(), o)
		if err == nil {
			_ = s.Close(context.Background())
		}
		wantError(t, err, want)
		if err != nil && strings.Contains(err.Error(), "u:p") {
			t.Errorf("the password is told: %v", err)
		}
	}
}

func TestAServerKnowsItsOwnRoute(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		listen string
		routes []string
		want   int
	}{
		"the address that it listens on":                   {"198.51.100.1:6222", []string{"198.51.100.1:6222", "nats-route://198.51.100.2:6222", "198.51.100.3:6222"}, 3},
		"it is not named":                                  {"198.51.100.1:6222", []string{"198.51.100.2:6222", "198.51.100.3:6222"}, 3},
		"an address of the machine, and it listens on all": {"0.0.0.0:6222", []string{"127.0.0.1:6222", "198.51.100.2:6222", "198.51.100.3:6222"}, 3},
		"a name of the address that it listens on":         {"127.0.0.1:6222", []string{"localhost:6222", "198.51.100.2:6222", "198.51.100.3:6222"}, 3},
		"the name of the machine in its domain":            {"[::]:6222", []string{name + ".peers.svc:6222", "198.51.100.2:6222", "198.51.100.3:6222"}, 3},
		"others on the same machine have other ports":      {"0.0.0.0:6222", []string{"127.0.0.1:6222", "127.0.0.1:6223", "127.0.0.1:6224"}, 3},
		"a name that begins like the machine's":            {"[::]:6222", []string{name + "2.invalid:6222", "198.51.100.2:6222"}, 3},
	} {
		if got := (&server.Cluster{Name: "c", Listen: c.listen, Routes: c.routes}).Size(); got != c.want {
			t.Errorf("%s: there are %d servers, want %d", what, got, c.want)
		}
	}
}
