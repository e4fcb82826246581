package intake

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

// TestCallBeats holds the beats of calls that come and go to the times at which
// each of them is due.
func TestCallBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, heard := time.Now(), map[string][]time.Duration{}
		var mu sync.Mutex // guards heard
		begin := func(reply string) *callBeat {
			return startBeat(schema.BeatEvery, reply, func(reply string) {
				mu.Lock()
				defer mu.Unlock()
				heard[reply] = append(heard[reply], time.Since(began))
			})
		}
		pass := func(d time.Duration) {
			<-time.After(d)
			synctest.Wait()
		}
		long, short := begin("long"), begin("short")
		pass(100 * time.Millisecond)
		short.end()
		second := begin("second")
		pass(700 * time.Millisecond)
		long.end()
		second.end()
		pass(time.Second)
		last := begin("last") // when there has been none for long
		pass(300 * time.Millisecond)
		last.end()
		pass(time.Second)
		every := schema.BeatEvery
		want := map[string][]time.Duration{
			"long":   {every, 2 * every, 3 * every},
			"second": {100*time.Millisecond + every, 100*time.Millisecond + 2*every},
			"last":   {1800*time.Millisecond + every},
		}
		if d := cmp.Diff(want, heard); d != "" {
			t.Errorf("the beats of each call (-want +got):\n%s", d)
		}
	})
}
