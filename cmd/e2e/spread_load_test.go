package e2e_test

import (
	"fmt"
	"testing"
	"time"
)

// changes is how many configurations are applied in a row.
func changes() int {
	if long() {
		return 200
	}
	return 20
}

// TestConfigurationsChangeUnderLoad applies one configuration after the other
// while calls are judged, and goes back to earlier ones in between. Every
// verdict is by exactly one of them, and never by one that was replaced before
// the call began.
func TestConfigurationsChangeUnderLoad(t *testing.T) {
	t.Parallel()
	s := startSpread(t, 2, 3)
	w := startWatch(t, dial(t, s.url))
	w.more(t, 50)
	var longest time.Duration
	for n := 2; n < 2+changes(); n++ {
		began := time.Now()
		version := s.apply(t, n)
		longest = max(longest, time.Since(began))
		w.floor.Store(version)
		if n%5 == 0 {
			w.more(t, callers)
			w.floor.Store(s.changed(t, n-1, "config", "rollback", fmt.Sprint(version-1), "--json"))
		}
	}
	w.more(t, 50)
	all := w.finish()
	t.Logf("%d changes, the slowest took %v; %v", len(s.says)-1, longest.Round(time.Millisecond), &all)
	all.check(t, s.says)
}
