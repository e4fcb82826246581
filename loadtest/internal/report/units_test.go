package report

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestValues(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{0, "s", "0 s"}, {0.0000000012, "s", "1.20 ns"}, {0.0001234, "s", "123 µs"}, {0.00999999, "s", "10 ms"}, {0.25, "s", "250 ms"},
		{1, "s", "1 s"}, {90, "s", "90 s"}, {900, "s", "15 min"}, {36_000, "s", "10 h"}, {-0.002, "s", "-2 ms"},
		{0, "B", "0 B"}, {1000, "B", "1,000 B"}, {1536, "B", "1.50 KiB"}, {180 << 20, "B", "180 MiB"}, {3 << 30, "B", "3 GiB"},
		{0.123456, "ratio", "0.123 ×"}, {12.5, "ratio", "12.5 ×"},
		{12_345.6, "/s", "12,346/s"}, {42_000_000, "/s", "42 million/s"}, {7, "", "7"}, {20_000_000, "calls", "20 million calls"},
		{1e-9, "", "1e-09"}, {math.Inf(1), "s", "+Inf h"},
	} {
		if got := Value(c.v, c.unit); got != c.want {
			t.Errorf("%v %q is written %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

func TestANumberIsShort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(-1e15, 1e15).Draw(t, "value")
		unit := rapid.SampledFrom([]string{"s", "B", "/s", "ratio", "", "calls"}).Draw(t, "unit")
		got := Value(v, unit)
		if len(got) > 32 || strings.HasPrefix(got, "-") != (v < 0) {
			t.Fatalf("%v is written %q", v, got)
		}
	})
}
