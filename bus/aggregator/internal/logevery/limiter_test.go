package logevery_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/bus/aggregator/internal/logevery"
)

// A line is a line of a kind at a time in seconds, and what is expected of it.
type line struct {
	kind string
	at   float64
	more int
	ok   bool
}

func TestTheLimiterAllowsAFewLinesOfEachKind(t *testing.T) {
	second := logevery.Rate{Lines: 1, Every: time.Second}
	for name, c := range map[string]struct {
		each, all logevery.Rate
		lines     []line
	}{
		"the first two in each interval, and the next says how many were left out": {
			each: logevery.Rate{Lines: 2, Every: 10 * time.Second},
			lines: []line{{"a", 0, 0, true}, {"a", 1, 0, true}, {"a", 2, 0, false}, {"a", 9.9, 0, false},
				{"a", 10, 2, true}, {"a", 11, 0, true}, {"a", 12, 0, false}},
		},
		"each kind has its own count": {
			each:  second,
			lines: []line{{"a", 0, 0, true}, {"b", 0, 0, true}, {"a", 0.5, 0, false}, {"b", 1, 0, true}, {"a", 1, 1, true}},
		},
		"all kinds together are bounded, and a line that was left out is not counted for its kind": {
			each: logevery.Rate{Lines: 1, Every: time.Minute}, all: logevery.Rate{Lines: 2, Every: time.Second},
			lines: []line{{"a", 0, 0, true}, {"b", 0, 0, true}, {"c", 0, 0, false}, {"c", 1, 1, true}, {"a", 1, 0, false}, {"d", 1, 0, true}, {"e", 1, 0, false}},
		},
		"without an interval, once": {
			each:  logevery.Rate{Lines: 1},
			lines: []line{{"a", 0, 0, true}, {"a", 1e6, 0, false}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := logevery.New(c.each, c.all)
			for i, want := range c.lines {
				got := want
				got.more, got.ok = l.Allow(want.kind, time.Unix(1000, 0).Add(time.Duration(want.at*float64(time.Second))))
				if d := cmp.Diff(want, got, cmp.AllowUnexported(line{})); d != "" {
					t.Errorf("line %d (-want +got):\n%s", i, d)
				}
			}
		})
	}
}

func TestResetReportsWhetherThereWasALine(t *testing.T) {
	l, now := logevery.New(logevery.Rate{Lines: 1}, logevery.Rate{}), time.Unix(1000, 0)
	if l.Reset("a") {
		t.Error("it reports a line before the first one")
	}
	l.Allow("a", now)
	if !l.Reset("a") || l.Reset("a") {
		t.Error("it does not report the line once")
	}
	if _, ok := l.Allow("a", now); !ok {
		t.Error("it does not allow a line after that")
	}
}

// TestTheLimiterRemembersABoundedNumberOfKinds checks that a client that invents kinds cannot fill
// the memory. Kinds whose interval is over make room.
func TestTheLimiterRemembersABoundedNumberOfKinds(t *testing.T) {
	l, now := logevery.New(logevery.Rate{Lines: 1, Every: time.Second}, logevery.Rate{}), time.Unix(1000, 0)
	allowed := 0
	for i := range 10_000 {
		if _, ok := l.Allow(i, now); ok {
			allowed++
		}
	}
	if allowed != 4096 {
		t.Errorf("it remembers %d kinds", allowed)
	}
	if _, ok := l.Allow(10_000, now.Add(time.Second)); !ok {
		t.Error("it allows no kind after the interval")
	}
}
