package workers_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
)

// slowly is a runner that loads handlers when the test allows.
type slowly struct{ let chan error }

func (s slowly) Load(schema.Hook, workers.Site) (workers.Handler, error) {
	return workers.HandlerFunc(allows), <-s.let
}

func (s slowly) Close() error { return nil }

func (s slowly) worker() *workers.Worker {
	return workers.New(workers.Options{Name: "w", Pools: []string{"p"}, Logger: quiet, Runners: map[schema.Kind]workers.Runner{schema.Builtin: s}})
}

// reports returns a function for Take and the channel of its results.
func reports() (func(*schema.Candidate), <-chan *schema.Candidate) {
	all := make(chan *schema.Candidate, 8)
	return func(c *schema.Candidate) { all <- c }, all
}

func versionOf(n uint64, hooks ...string) *schema.Config {
	cfg := guards(n, "f", hooks...)
	return &cfg
}

func TestACandidateIsLoadedBesideTheActiveVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slowly{make(chan error)}
		w := s.worker()
		say, heard := reports()
		active, candidate := versionOf(1, "a"), versionOf(2, "a", "b")
		go func() { s.let <- nil }()
		w.Take(state.Update{Fabric: "f", Active: active, Keep: []uint64{1}}, say)
		if c := <-heard; c != nil {
			t.Errorf("without a candidate it reports %+v", c)
		}
		w.Take(state.Update{Fabric: "f", Active: active, Candidate: candidate, Keep: []uint64{2, 1}}, say) // does not block
		wantKinds(t, w.Run(t.Context(), batchOf(1, "f", 0)), "0:ok")
		if b := w.Beat("p"); b.Candidate != nil {
			t.Errorf("before it is loaded, the heartbeat has %+v", b.Candidate)
		}
		s.let <- nil
		s.let <- errors.New("there is no b")
		want := &schema.Candidate{Version: 2, LoadErrors: map[string]string{"b": "there is no b"}}
		if diff := cmp.Diff(want, <-heard); diff != "" {
			t.Error(diff)
		}
		if b := w.Beat("p"); !cmp.Equal(b.Candidate, want) || !cmp.Equal(b.Versions, []uint64{1, 2}) || w.Version() != 1 {
			t.Errorf("%+v, active is %d", b, w.Version())
		}
		w.Take(state.Update{Fabric: "f", Active: candidate, Keep: []uint64{2, 1}}, say)
		if c := <-heard; c != nil || w.Version() != 2 || w.Beat("p").Candidate != nil {
			t.Errorf("activated, it reports %+v and runs version %d", c, w.Version())
		}
	})
}

func TestACandidateWithdrawnDuringLoadingIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slowly{make(chan error)}
		w := s.worker()
		say, heard := reports()
		w.Take(state.Update{Fabric: "f", Candidate: versionOf(1, "a"), Keep: []uint64{1}}, say)
		w.Take(state.Update{Fabric: "f"}, say)
		if c := <-heard; c != nil {
			t.Errorf("%+v", c)
		}
		s.let <- nil
		synctest.Wait()
		if b := w.Beat("p"); len(heard) > 0 || b.Candidate != nil || len(b.Versions) > 0 {
			t.Errorf("%d more reports; the heartbeat is %+v", len(heard), b)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestACandidateWithLoadErrorsIsReported(t *testing.T) {
	w := slowly{}.worker()
	say, heard := reports()
	w.Take(state.Update{Bad: &state.BadVersion{Version: 3, Err: errors.New("it is of a newer release")}}, say)
	want := &schema.Candidate{Version: 3, Error: "it is of a newer release"}
	if diff := cmp.Diff(want, <-heard); diff != "" || !cmp.Equal(w.Beat("p").Candidate, want) {
		t.Error(diff, w.Beat("p").Candidate)
	}
}

func TestACandidateOfAnOldFabricIsDropped(t *testing.T) {
	for range 50 { // in either order of loading
		w := newWorker(library{"a": allows}, guards(1, "f", "a"))
		say, _ := reports()
		next := guards(1, "g", "a")
		w.Take(state.Update{Fabric: "f", Candidate: versionOf(2, "a"), Keep: []uint64{2, 1}}, say)
		w.Take(state.Update{Fabric: "g", Active: &next, Keep: []uint64{1}}, say)
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		wantKinds(t, w.Run(t.Context(), batchOf(1, "g", 0)), "0:ok")
	}
}

// cutShort is a runner that loads nothing until it is closed.
type cutShort struct{ closed chan struct{} }

func (c cutShort) Load(schema.Hook, workers.Site) (workers.Handler, error) {
	<-c.closed
	return nil, errors.New("the worker is stopping")
}

func (c cutShort) Close() error {
	close(c.closed)
	return nil
}

func TestALoadInterruptedByCloseIsNotReported(t *testing.T) {
	w := workers.New(workers.Options{
		Name: "w", Pools: []string{"p"}, Logger: quiet,
		Runners: map[schema.Kind]workers.Runner{schema.Builtin: cutShort{make(chan struct{})}},
	})
	say, heard := reports()
	w.Take(state.Update{Fabric: "f", Candidate: versionOf(1, "a"), Keep: []uint64{1}}, say)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if len(heard) > 0 || w.Beat("p").Candidate != nil {
		t.Errorf("it reports %+v", w.Beat("p").Candidate)
	}
}

func TestAHeartbeatWithManyLoadErrorsFitsIntoAMessage(t *testing.T) {
	w := workers.New(workers.Options{Name: "w", Pools: []string{"p"}, Logger: quiet})
	var missing []string
	for i := range 20_000 {
		missing = append(missing, fmt.Sprintf("hook-%d", i))
	}
	active, candidate := versionOf(1, missing...), versionOf(2, missing...)
	say, heard := reports()
	w.Take(state.Update{Fabric: "f", Active: active, Candidate: candidate, Keep: []uint64{2, 1}}, say)
	<-heard
	b := w.Beat("p")
	data, err := schema.Marshal(b)
	if err != nil || len(data) > 512<<10 || len(b.LoadErrors) < 100 || len(b.Candidate.LoadErrors) < 100 {
		t.Errorf("%d bytes, %d and %d load errors, %v", len(data), len(b.LoadErrors), len(b.Candidate.LoadErrors), err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
