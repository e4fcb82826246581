package queue_test

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go/jetstream"
)

// fill puts n items for as many other agents into the bucket.
func fill(b testing.TB, s *server.Server, n int) {
	b.Helper()
	js, err := jetstream.New(connect(b, s), jetstream.WithPublishAsyncMaxPending(n+1))
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		it := item(1)
		value, err := schema.Marshal(it)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := js.PublishAsync("$KV."+queue.ItemBucket+".a-other"+strconv.Itoa(i)+".p.1", value); err != nil {
			b.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(time.Minute):
		b.Fatal("the items cannot be stored")
	}
}

func BenchmarkNothingDue(b *testing.B) {
	for _, others := range []int{0, 100_000} {
		b.Run(fmt.Sprint("others=", others), func(b *testing.B) {
			s := bustest.Start(b)
			open(b, s, queue.Options{})
			fill(b, s, others)
			q := open(b, s, queue.Options{})
			q.Seen("a", "s", "")
			b.ReportAllocs()
			for b.Loop() {
				q.Seen("a", "s", "")
				if q.Due("a", "s", "") {
					b.Fatal("something is due")
				}
			}
		})
	}
}

func BenchmarkNothingFits(b *testing.B) {
	for _, own := range []int{1, 10_000} {
		b.Run(fmt.Sprint("own=", own), func(b *testing.B) {
			q := open(b, bustest.Start(b), queue.Options{})
			for n := range uint64(own) {
				enqueue(b, q, item(n+1, matcher("Other|Another")))
			}
			for b.Loop() {
				q.Seen("a", "s", "T")
				if q.Due("a", "s", "T") {
					b.Fatal("something is due")
				}
			}
		})
	}
}

// syncs are how a server forces what it stored onto the disk.
func syncs() map[string]time.Duration {
	return map[string]time.Duration{"always": 0, "relaxed": 10 * time.Second}
}

// synced runs a server that syncs so. bustest itself never has one sync always.
func synced(b *testing.B, every time.Duration) *server.Server {
	b.Helper()
	s, err := server.Start(context.Background(), server.Options{Dir: b.TempDir(), SyncInterval: every})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			b.Error(err)
		}
	})
	return s
}

func BenchmarkEnqueue(b *testing.B) {
	for name, every := range syncs() {
		for _, callers := range []int{1, 16} {
			b.Run(fmt.Sprint("sync=", name, "/callers=", callers), func(b *testing.B) {
				q := open(b, synced(b, every), queue.Options{MaxPerScope: 1 << 20})
				b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
				if callers == 1 {
					for b.Loop() {
						enqueue(b, q, item(0))
					}
					return
				}
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						enqueue(b, q, item(0))
					}
				})
			})
		}
	}
}

func BenchmarkClaimAndAck(b *testing.B) {
	for name, every := range syncs() {
		b.Run("sync="+name, func(b *testing.B) {
			q := open(b, synced(b, every), queue.Options{})
			q.Seen("a", "s", "")
			n := 0
			for b.Loop() {
				b.StopTimer()
				enqueue(b, q, item(0))
				n++
				b.StartTimer()
				// The claim waits for the mirror to tell of what was just accepted.
				if got := claim(b, q, fmt.Sprint("e", n), acks(fmt.Sprint("e", n-1))); len(got.Items) != 1 {
					b.Fatalf("%d items", len(got.Items))
				}
			}
		})
	}
}

// heap is what of the heap is in use.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one freed of pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkOpen(b *testing.B) {
	s := bustest.Start(b)
	if err := open(b, s, queue.Options{}).Close(b.Context()); err != nil { // it made the buckets
		b.Fatal(err)
	}
	fill(b, s, 100_000)
	js := bustest.JetStream(b, s)
	var before, after runtime.MemStats
	for b.Loop() {
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&before)
		b.StartTimer()
		q, err := queue.Open(b.Context(), js, queue.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		runtime.GC()
		runtime.ReadMemStats(&after)
		if n := q.Pending("", 1).Total; n != 100_000 {
			b.Fatalf("%d items", n)
		}
		if err := q.Close(context.Background()); err != nil {
			b.Error(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/100_000, "B/item")
}
