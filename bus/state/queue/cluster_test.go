package queue_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// cluster runs three servers that keep three copies of everything.
func cluster(t *testing.T) (servers []*server.Server) {
	t.Helper()
	var routes []*url.URL
	var ports []int
	for _, address := range bustest.FreeAddresses(t, 3) {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, int(at.Port()))
		routes = append(routes, &url.URL{Scheme: "nats-route", Host: address})
	}
	for i := range 3 {
		s, err := server.NewServer(&server.Options{
			ServerName: fmt.Sprint("n", i), Host: "127.0.0.1", Port: -1, NoSigs: true, NoLog: true,
			JetStream: true, StoreDir: t.TempDir(), JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: 4 << 30,
			Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: ports[i]}, Routes: routes,
		})
		if err != nil {
			t.Fatal(err)
		}
		go s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		servers = append(servers, s)
	}
	for _, s := range servers {
		if !s.ReadyForConnections(30 * time.Second) {
			t.Fatal("a server does not start")
		}
	}
	return servers
}

// TestAClusterThatLosesItsLeaderLosesNothing has three nodes enqueue, claim and
// acknowledge while the server that leads the items goes away.
func TestAClusterThatLosesItsLeaderLosesNothing(t *testing.T) {
	if os.Getenv("HOOKFABRIC_LONG") == "" {
		t.Skip("NOT TESTED: three clustered servers, and the loss of a leader; set HOOKFABRIC_LONG=1")
	}
	servers := cluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var nodes []*queue.Queue
	var streams []jetstream.JetStream
	for _, s := range servers {
		nc, err := nats.Connect(s.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		q, err := queue.Open(ctx, js, queue.Options{Replicas: 3})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = q.Close(context.Background()) })
		nodes, streams = append(nodes, q), append(streams, js)
	}
	st, err := streams[0].Stream(ctx, "KV_"+queue.ItemBucket)
	if err != nil {
		t.Fatal(err)
	}
	leader := st.CachedInfo().Cluster.Leader
	const each = 100
	got := make(map[string][]uint64)
	var mu sync.Mutex // guards got
	var wg sync.WaitGroup
	for i := range nodes {
		agent := fmt.Sprint("agent", i)
		wg.Go(func() { // who enqueues asks again until it is accepted
			for n := range uint64(each) {
				if n == each/3 && servers[i].Name() == leader {
					began := time.Now()
					servers[i].Shutdown()
					t.Logf("%s led and went away in %v", leader, time.Since(began))
				}
				it := item(n+1, func(it *schema.Item) { it.Scope.Agent = agent })
				for {
					_, err := nodes[i].Enqueue(ctx, it)
					if err == nil {
						break
					}
					if ctx.Err() != nil || !errors.Is(err, queue.ErrUnavailable) {
						t.Error(err)
						return
					}
				}
			}
		})
		wg.Go(func() {
			for n, had := 0, 0; had < each && ctx.Err() == nil; n++ {
				// The same event asks until it has an answer, through any node.
				c := &queue.Claim{Routing: schema.Routing{Agent: agent, ID: fmt.Sprint("e", n)}}
				taken, err := nodes[n%3].Claim(ctx, c)
				for k := n; err != nil && ctx.Err() == nil; k++ {
					taken, err = nodes[k%3].Claim(ctx, c)
				}
				had += len(taken.Items)
				mu.Lock()
				for _, it := range taken.Items {
					got[agent] = append(got[agent], it.Number)
				}
				mu.Unlock()
				for k := n; len(taken.Items) > 0 && ctx.Err() == nil; k++ {
					if nodes[k%3].Ack(ctx, agent, []string{c.ID}) == nil {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	for agent, numbers := range got {
		if len(numbers) != each || !slices.IsSorted(numbers) || len(slices.Compact(slices.Clone(numbers))) != each {
			t.Errorf("%s got %v", agent, numbers)
		}
	}
	if len(got) != len(nodes) {
		t.Errorf("only %d agents got anything", len(got))
	}
}
