package bustest

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Where FreeAddresses looks: below the ports from which systems take those of
// connections, or another one might have the port before it is listened on.
const (
	lowestPort  = 20_000
	highestPort = 32_000
)

// FreeAddresses finds so many addresses of this machine that nobody listens on.
func FreeAddresses(tb testing.TB, n int) (all []string) {
	tb.Helper()
	for tries := 0; len(all) < n; tries++ {
		if tries == 100*n {
			tb.Fatalf("only %d of %d free ports were found from %d to %d", len(all), n, lowestPort, highestPort)
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(lowestPort+rand.N(highestPort-lowestPort)))
		l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", address)
		if err != nil {
			continue
		}
		defer l.Close() // all are kept until the last is found, so that they differ
		all = append(all, address)
	}
	return all
}
