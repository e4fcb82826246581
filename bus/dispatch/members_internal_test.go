package dispatch

import (
	"errors"
	"slices"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// left reports a worker w dead in some pools. It returns the pools in which its batch was
// lost, and those in which it is unknown now.
func left(t *testing.T, moves string, pools ...string) (lost, forgotten []string) {
	t.Helper()
	m := NewMembers(10)
	var sent []*sentBatch
	for _, pool := range []string{"guard", "lint", "other"} {
		m.Beat(&schema.Beat{Pool: pool, Worker: "w", Capacity: 1})
		f := &sentBatch{wire: schema.Batch{Batch: "in " + pool}, pool: pool, worker: "w", stop: func() {}}
		if !m.track(f, m.pool(pool).find("w")) {
			t.Fatal("the worker is not there")
		}
		sent = append(sent, f)
	}
	if moves != "" {
		m.Beat(&schema.Beat{Pool: moves, Worker: "w", Capacity: 1, Moving: true})
	}
	m.Gone("w", pools...)
	for _, f := range sent {
		if errors.Is(f.lost, ErrGone) {
			lost = append(lost, f.pool)
		}
		if m.pool(f.pool).find("w") == nil {
			forgotten = append(forgotten, f.pool)
		}
	}
	return lost, forgotten
}

// Workers of several pools may have one name.
func TestAWorkerIsGoneOnlyFromTheNamedPools(t *testing.T) {
	all := []string{"guard", "lint", "other"}
	for name, c := range map[string]struct {
		moves       string
		pools, want []string
	}{
		"one pool":                       {"", []string{"lint"}, []string{"lint"}},
		"two pools":                      {"", []string{"guard", "other"}, []string{"guard", "other"}},
		"a pool without a worker":        {"", []string{"none"}, nil},
		"no pool, which means all":       {"", nil, all},
		"one that moves in a named pool": {"lint", []string{"lint"}, nil},
		"one that moves in another pool": {"lint", []string{"guard"}, []string{"guard"}},
		"one that moves, and all pools":  {"lint", nil, nil},
	} {
		if lost, forgotten := left(t, c.moves, c.pools...); !slices.Equal(lost, c.want) || !slices.Equal(forgotten, c.want) {
			t.Errorf("%s: lost by %q, forgotten in %q", name, lost, forgotten)
		}
	}
}
