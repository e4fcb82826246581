package queue_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// TestConcurrentClaimsNeverGetTheSameItem has 64 events of one agent claim at
// the same time, through four processes, while items come in.
func TestConcurrentClaimsNeverGetTheSameItem(t *testing.T) {
	bubble(t, func(t *testing.T, s *server.Server) {
		const sources, each, racers = 8, 25, 64
		var nodes []*queue.Queue
		for range 4 {
			nodes = append(nodes, open(t, s, queue.Options{}))
		}
		var (
			wg    sync.WaitGroup
			mu    sync.Mutex // guards got
			got   = make(map[string][]uint64)
			total int
		)
		for i := range sources {
			wg.Go(func() {
				for n := range uint64(each) {
					it := item(n+1, source(fmt.Sprint("s", i)), func(it *schema.Item) { it.Producer = fmt.Sprint("p", i) })
					if _, err := nodes[i%len(nodes)].Enqueue(t.Context(), it); err != nil {
						t.Error(err)
					}
				}
			})
		}
		take := func(racer, round int) {
			q, event := nodes[racer%len(nodes)], fmt.Sprint(racer, "-", round)
			c, err := q.Claim(t.Context(), &queue.Claim{Routing: schema.Routing{Agent: "a", ID: event}, MaxBytes: 30})
			if err != nil {
				t.Error(err)
				return
			}
			if len(c.Items) == 0 {
				return
			}
			mu.Lock()
			for _, it := range c.Items {
				got[it.Source] = append(got[it.Source], it.Number)
				total++
			}
			mu.Unlock()
			if err := nodes[(racer+round)%len(nodes)].Ack(t.Context(), "a", []string{event}); err != nil {
				t.Error(err)
			}
		}
		for racer := range racers {
			wg.Go(func() {
				for round := range 10 {
					take(racer, round)
				}
			})
		}
		wg.Wait()
		for round := 10; total < sources*each && round < 300; round++ {
			take(round%4, round)
		}
		for s, numbers := range got {
			if !slices.IsSorted(numbers) || len(numbers) != each || len(slices.Compact(slices.Clone(numbers))) != each {
				t.Errorf("of source %s went out %v", s, numbers)
			}
		}
		if total != sources*each {
			t.Errorf("%d of %d went out", total, sources*each)
		}
	})
}
