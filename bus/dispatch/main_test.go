package dispatch_test

import (
	"flag"
	"os"
	"testing"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/internal/model/gen"
)

// TestMain makes every property try 1,000 cases, and 10,000 if HOOKFABRIC_LONG is set. Under
// the race detector, which slows each case down ten times, 200 are enough to find races.
func TestMain(m *testing.M) {
	flag.Parse()
	cases := 1_000
	switch {
	case bustest.Raced || testing.Short():
		cases = 200
	case os.Getenv("HOOKFABRIC_LONG") != "":
		cases = 10_000
	}
	gen.Checks(cases)
	os.Exit(m.Run())
}
