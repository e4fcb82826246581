package control

import (
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator/ratelimit"
)

// TestTheAllowanceOfReportsIsForADay checks that an agent's allowance for reports of unjudged calls
// is for a day from its first one.
func TestTheAllowanceOfReportsIsForADay(t *testing.T) {
	c := New(Options{Allowances: ratelimit.Allowances{UnjudgedBytes: 1000}})
	began := time.Unix(1_000_000, 0)
	for _, tt := range []struct {
		name  string
		after time.Duration
		want  bool
	}{
		{"the first", 0, true},
		{"one above the allowance", time.Second, false},
		{"one just before a day is over", 24*time.Hour - 1, false},
		{"one a day later", 24 * time.Hour, true},
	} {
		if got := c.records.Take("wild", 600, began.Add(tt.after)); got != tt.want {
			t.Errorf("%s is taken: %v", tt.name, got)
		}
	}
}
