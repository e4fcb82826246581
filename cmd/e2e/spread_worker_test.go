package e2e_test

import (
	"slices"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// TestWorkerThatWasAwayComesBackOnTheActiveVersion takes the only worker of a
// pool away, changes the configuration more often than nodes keep versions, and
// brings it back.
func TestWorkerThatWasAwayComesBackOnTheActiveVersion(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]func(*testing.T, *spread) (back func()){
		"stopped in order and started again": func(t *testing.T, s *spread) func() {
			s.workers[0].must(t, syscall.SIGTERM)
			if code, err := s.workers[0].wait(); err != nil || code != 0 {
				t.Errorf("it ended with %d, %v", code, err)
			}
			return func() { s.workers[0] = s.worker(t, 0) }
		},
		"killed and started again": func(t *testing.T, s *spread) func() {
			s.workers[0].kill()
			return func() { s.workers[0] = s.worker(t, 0) }
		},
		"frozen": func(t *testing.T, s *spread) func() {
			s.workers[0].freeze(t)
			return func() { s.workers[0].must(t, syscall.SIGCONT) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSpread(t, 2, 1)
			c := dial(t, s.url)
			back := away(t, s)
			awaitState(t, s, "the worker is away", func(w *schema.WorkerStatus) bool { return w == nil || w.Silent })
			var version uint64
			for n := 2; n <= 6; n++ {
				version = s.apply(t, n)
			}
			back()
			awaitState(t, s, "the worker has the active version", func(w *schema.WorkerStatus) bool {
				return w != nil && !w.Silent && slices.Contains(w.Versions, version)
			})
			s.awaitWorkers(t)
			for range 20 {
				v, err := ask(t.Context(), c, "Tool")
				if err != nil || sightOf(v) != s.says[version] {
					t.Fatalf("a call got %+v, %v; want %+v", v, err, s.says[version])
				}
			}
		})
	}
}

// awaitState waits until a broker sees the worker w0 as it should be; nil: it
// does not know it.
func awaitState(t testing.TB, s *spread, what string, ok func(*schema.WorkerStatus) bool) {
	t.Helper()
	var last schema.FabricStatus
	err := eventually(what, func() bool {
		st, err := status(s.nc)
		if err != nil {
			return false
		}
		last = st
		return ok(workerOf(&st, "w0"))
	})
	if err != nil {
		t.Fatalf("%v: %+v", err, last.Pools)
	}
}

// workerOf is a worker of a pool of its own; nil: it is not known.
func workerOf(st *schema.FabricStatus, name string) *schema.WorkerStatus {
	for _, p := range st.Pools {
		for i := range p.Workers {
			if p.Workers[i].Worker == name {
				return &p.Workers[i]
			}
		}
	}
	return nil
}
