package state

import (
	"testing"
	"time"
)

// After a sleep of the machine its monotonic clock is behind its wall clock.
func TestFreshnessEndsByEitherClock(t *testing.T) {
	now := time.Now()
	past, future := now.Add(-time.Second), now.Add(time.Second)
	for name, c := range map[string]struct {
		until *freshness
		want  bool
	}{
		"it was never confirmed":         {nil, false},
		"both clocks are before the end": {&freshness{steady: future, wall: future.Round(0)}, true},
		"the machine slept":              {&freshness{steady: future, wall: past.Round(0)}, false},
		"the clock was set back":         {&freshness{steady: past, wall: future.Round(0)}, false},
		"both clocks are at the end":     {&freshness{steady: now, wall: now.Round(0)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var l Lease
			if l.until.Store(c.until); l.Fresh(now) != c.want {
				t.Errorf("fresh: %v", !c.want)
			}
		})
	}
}

func TestFreshnessNeverEndsEarlier(t *testing.T) {
	var l Lease
	now := time.Now()
	l.extend(now.Add(freshFor))
	l.extend(now.Add(unsaidFor))
	if !l.Fresh(now.Add(freshFor-1)) || l.Fresh(now.Add(freshFor)) {
		t.Error("a partly failed renewal shortened the freshness")
	}
}
