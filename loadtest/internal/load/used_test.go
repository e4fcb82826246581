package load

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// kept holds what a test allocates, so that it is really allocated.
type kept struct{ some [][]byte }

func TestSoFarCountsWhatIsAllocated(t *testing.T) {
	var k kept
	before := SoFar()
	for range 1000 {
		k.some = append(k.some, make([]byte, 100))
	}
	used := SoFar().Since(before)
	if used.Allocations < 1000 || used.Bytes < 100_000 || used.CPU < 0 {
		t.Errorf("making %d slices of 100 bytes used %+v", len(k.some), used)
	}
	if both := used.Plus(used); both.Since(used) != used {
		t.Errorf("twice %+v is %+v", used, both)
	}
}

func TestAllCallsAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := Window{Callers: 2, Warm: schema.Duration(50 * time.Millisecond), Long: schema.Duration(100 * time.Millisecond)}
		got, err := Run(t.Context(), w, after(time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if got.Calls != 2*100 || got.Asked != 2*150 {
			t.Errorf("%d calls were counted of %d; 200 of 300 were due", got.Calls, got.Asked)
		}
	})
}
