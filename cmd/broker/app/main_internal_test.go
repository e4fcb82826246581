package app

import (
	"testing"

	"github.com/hookfabric/hookfabric/bus/bustest"
)

func TestMain(m *testing.M) { bustest.Main(m) }
