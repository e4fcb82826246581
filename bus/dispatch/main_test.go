package dispatch_test

import (
	"flag"
	"os"
	"testing"

	"github.com/hookfabric/hookfabric/bus/internal/model/gen"
)

// TestMain has every property try 10,000 cases; fewer where each of them costs
// ten times as much, or when somebody is in a hurry.
func TestMain(m *testing.M) {
	flag.Parse()
	cases := 10_000
	if raceDetector || testing.Short() {
		cases = 1_000
	}
	gen.Checks(cases)
	os.Exit(m.Run())
}
