package model_test

import (
	"os"
	"testing"

	"github.com/hookfabric/hookfabric/bus/internal/model/gen"
)

// TestMain has every law try 10,000 cases; few under the race detector, for
// nothing here runs beside anything else.
func TestMain(m *testing.M) {
	cases := 10_000
	if raceDetector {
		cases = 200
	}
	gen.Checks(cases)
	os.Exit(m.Run())
}
