package control

import (
	"strings"
	"testing"
	"time"
)

// TestWhatComesAfterAStandstillMayBeAsOld checks that a request read right after a standstill may
// be as old as the standstill: the process cannot tell when it arrived.
func TestWhatComesAfterAStandstillMayBeAsOld(t *testing.T) {
	at := func(seconds float64) time.Time {
		return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
	}
	for name, c := range map[string]struct {
		ticks      []float64
		taken, old float64 // seconds
	}{
		"there was no tick yet":            {nil, 5, 0},
		"it runs":                          {[]float64{1, 1.05, 1.1}, 1.12, 0},
		"it is busy":                       {[]float64{1, 1.9}, 2.8, 0},
		"it just woke, and did not tick":   {[]float64{1}, 9, 8},
		"it just woke, and somebody did":   {[]float64{1, 9}, 9.5, 8.5},
		"it has been awake for long":       {[]float64{1, 9, 9.5, 10, 10.5}, 10.6, 0},
		"it stood still twice":             {[]float64{1, 9, 9.5, 10.2, 13}, 13.1, 2.9},
		"it stood still again at once":     {[]float64{1, 9, 12}, 12.1, 11.1},
		"it woke from the first one again": {[]float64{1, 9, 9.1, 9.9}, 9.95, 8.95},
	} {
		t.Run(name, func(t *testing.T) {
			var s standstill
			for _, tick := range c.ticks {
				s.tick(at(tick))
			}
			if got, want := at(c.taken).Sub(s.came(at(c.taken))), at(c.old).Sub(at(0)); got != want {
				t.Errorf("it may be %v old, want %v", got, want)
			}
		})
	}
}

func TestARequestIsRefusedInTimeThatWaitedForABrokerWhichStoodStill(t *testing.T) {
	start := time.Unix(1000, 0)
	for still, left := range map[time.Duration]time.Duration{0: verbTime, 4 * time.Second: verbTime, 8 * time.Second: time.Second, 10 * time.Second: -1} {
		var a Control
		a.still.tick(start)
		now := start.Add(still)
		due, err := a.due(true, now)
		switch {
		case left > 0 && (err != nil || due.Sub(now) != left):
			t.Errorf("after %v there are %v left: %v", still, due.Sub(now), err)
		case left < 0 && (err == nil || !strings.Contains(err.Error(), "stalled for 10s")):
			t.Errorf("after %v it is not refused: %v", still, err)
		}
		if due, err := a.due(false, now); err != nil || due.Sub(now) != verbTime {
			t.Errorf("what changes nothing has until %v, %v", due, err)
		}
	}
}
