package bustest

import (
	"testing"

	"github.com/hookfabric/hookfabric/bus/bustest/ports"
)

// FreeAddresses returns n free loopback addresses, for servers whose address must be known before they listen.
func FreeAddresses(tb testing.TB, n int) []string {
	tb.Helper()
	all, err := ports.Free(n)
	if err != nil {
		tb.Fatal(err)
	}
	return all
}
