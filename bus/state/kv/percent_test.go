package kv_test

import (
	"math"
	"testing"

	"github.com/hookfabric/hookfabric/bus/state/kv"
)

func TestPercentOf(t *testing.T) {
	for _, c := range []struct {
		bound   int64
		percent int
		want    int64
	}{
		{0, 90, 0}, {7, 90, 6}, {50, 90, 45}, {199, 50, 99}, {1 << 30, 100, 1 << 30}, {1 << 30, 0, 0},
		{math.MaxInt64, 90, math.MaxInt64/10*9 + 6}, // must not overflow
	} {
		if got := kv.PercentOf(c.bound, c.percent); got != c.want {
			t.Errorf("%d %% of %d is %d, want %d", c.percent, c.bound, got, c.want)
		}
	}
}
