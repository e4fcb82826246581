package workers_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

func lingering(d time.Duration) func(*workers.Options) {
	return func(o *workers.Options) { o.Linger = d }
}

func TestAReplacedVersionIsHeldForItsCalls(t *testing.T) {
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

func TestTheNumberOfLingeringVersionsIsLimited(t *testing.T) {
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

// A latecomer is a runner whose handler "slow" loads when the test allows.
type latecomer struct {
	library
	begun, on chan struct{}
}

func (s latecomer) Load(h schema.Hook, at workers.Site) (workers.Handler, error) {
	if h.Handler == "slow" {
		close(s.begun)
		<-s.on
	}
	return s.library.Load(h, at)
}

func TestASlowLoadDoesNotDelayOtherVersions(t *testing.T) {
	r := latecomer{library{"yes": allows, "slow": allows}, make(chan struct{}), make(chan struct{})}
	w := workers.New(workers.Options{Name: "w", Pools: []string{"p"}, Runners: map[schema.Kind]workers.Runner{schema.Builtin: r}, Logger: quiet})
	one, two := guards(1, "f", "yes"), guards(2, "f", "yes", "slow")
	w.Load(one)
	reports := make(chan *schema.Candidate, 2)
	say := func(c *schema.Candidate) { reports <- c }
	w.Take(state.Update{Fabric: "f", Active: &one, Candidate: &two, Keep: []uint64{2, 1}}, say)
	<-r.begun
	w.Take(state.Update{Fabric: "f", Active: &one, Keep: []uint64{1}}, say) // it was withdrawn
	if c := <-reports; c != nil {
		t.Errorf("of a withdrawn version it reports %+v", c)
	}
	close(r.on)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if b := w.Beat("p"); !cmp.Equal(b.Versions, []uint64{1}) || len(reports) > 0 {
		t.Errorf("in the end it holds %v, and reported more: %d", b.Versions, len(reports))
	}
}
