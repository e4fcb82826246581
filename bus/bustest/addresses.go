package bustest

import (
	"testing"

	"github.com/hookfabric/hookfabric/bus/bustest/ports"
)

// FreeAddresses finds so many addresses of this machine that nobody listens on, for
// servers whose address must be known before they listen.
func FreeAddresses(tb testing.TB, n int) []string {
	tb.Helper()
	all, err := ports.Free(n)
	if err != nil {
		tb.Fatal(err)
	}
	return all
}
