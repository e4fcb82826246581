package model_test

import (
	"os"
	"testing"

	"github.com/hookfabric/hookfabric/bus/dispatch/model/gen"
)

func TestMain(m *testing.M) {
	gen.Checks(10_000)
	os.Exit(m.Run())
}
