package schema_test

import (
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

func TestNamesOfPools(t *testing.T) {
	for name, want := range map[string]bool{
		"default": true, "gpu-2_A": true, "-": true, strings.Repeat("p", 64): true,
		"": false, "a b": false, "a.b": false, "a*": false, "größe": false, "a\n": false, strings.Repeat("p", 65): false,
	} {
		if schema.IsPool(name) != want {
			t.Errorf("%q is a name of a pool: %t", name, !want)
		}
	}
}
