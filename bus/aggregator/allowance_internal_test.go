package aggregator

import (
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator/ratelimit"
)

// TestTheAllowanceOfReportsIsForADay checks that an agent's allowance for reports of unjudged calls
// is for a day from its first one.
func TestTheAllowanceOfReportsIsForADay(t *testing.T) {
	state := newControlState(ratelimit.Allowances{UnjudgedBytes: 1000})
	began := time.Unix(1_000_000, 0)
	for _, c := range []struct {
		name  string
		after time.Duration
		want  bool
	}{
		{"the first", 0, true},
		{"one above the allowance", time.Second, false},
		{"one just before a day is over", 24*time.Hour - 1, false},
		{"one a day later", 24 * time.Hour, true},
	} {
		if got := state.records.take("wild", 600, began.Add(c.after)); got != c.want {
			t.Errorf("%s is taken: %v", c.name, got)
		}
	}
}
