package saturate

import (
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/load"
	"github.com/hookfabric/hookfabric/loadtest/result"
	"github.com/hookfabric/hookfabric/loadtest/scenario"
)

// TestALoadThatIsNotTooMuchIsCalledSo has calls take so long, of which so many in a
// hundred are answered.
func TestALoadThatIsNotTooMuchIsCalledSo(t *testing.T) {
	s := scenario.Default()
	for name, c := range map[string]struct {
		took     time.Duration
		answered int64
		careful  bool
	}{
		"all are answered at once": {took: time.Millisecond, answered: 100, careful: true},
		"they take long":           {took: time.Second, answered: 100},
		"many are not answered":    {took: time.Millisecond, answered: 90},
	} {
		k := load.Kind{Offered: 100, Answered: c.answered}
		for range k.Offered {
			k.Latency.Record(c.took)
		}
		var d result.Document
		shown(&d, (&search{scenario: &s, base: 0.001}).keeps(k))
		if got := strings.Contains(strings.Join(d.Notes, ""), "kept up"); got != c.careful {
			t.Errorf("%s: %q", name, d.Notes)
		}
	}
}

func TestARecoveryIsBoundedOnlyWhereThereWasAnOverload(t *testing.T) {
	for keeps, over := range map[bool]bool{true: false, false: true} {
		if got := !recovered(backIn+1, keeps).OK(); got != over {
			t.Errorf("the load was kept up with: %t, and a long recovery is over its bound: %t", keeps, got)
		}
	}
}
