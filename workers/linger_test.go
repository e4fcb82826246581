package workers_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

func lingering(d time.Duration) func(*workers.Options) {
	return func(o *workers.Options) { o.Linger = d }
}

func TestAVersionThatWasReplacedIsHeldForCallsThatBeganByIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClosing()
		w := c.worker(lingering(time.Minute))
		w.Load(guards(1, "f", "a"))
		w.Prepare(guards(2, "f", "a")) // never active
		w.Prepare(guards(3, "f", "a"))
		w.Activate(3, []uint64{3})
		if n := <-c.closed; n != 2 {
			t.Errorf("handler %d was closed first, not the one that no call can need", n)
		}
		<-time.After(30 * time.Second)
		w.Prepare(guards(4, "f", "a"))
		w.Activate(4, []uint64{4})
		if b := w.Beat("p"); !cmp.Equal(b.Versions, []uint64{1, 3, 4}) {
			t.Errorf("after 30 s it holds %v", b.Versions)
		}
		for i, want := range [][]uint64{{3, 4}, {4}} {
			<-time.After(30 * time.Second)
			synctest.Wait()
			if b := w.Beat("p"); !cmp.Equal(b.Versions, want) {
				t.Errorf("after %d s it holds %v, not %v", 60+30*i, b.Versions, want)
			}
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestWhatLingersIsBounded(t *testing.T) {
	w := newWorker(library{"yes": allows}, config(hook("yes")), lingering(time.Hour))
	for v := uint64(2); v <= 100; v++ {
		cfg := config(hook("yes"))
		cfg.Version = v
		w.Load(cfg)
	}
	held := w.Beat("p").Versions
	if len(held) != 35 || held[0] != 66 || held[34] != 100 {
		t.Errorf("of 100 versions it holds %v", held)
	}
	if r := w.Run(t.Context(), batch(0)); r.Status != schema.StatusStale {
		t.Errorf("a batch of the first version: %+v", r)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
