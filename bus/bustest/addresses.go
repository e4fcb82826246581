package bustest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// The range of FindAddresses is below the ephemeral ports, because a connection could get the port before its server listens, or
// during a restart of the server.
const (
	lowest  = 20_000
	highest = 32_000
)

// triesEach bounds the ports that are tried for each wanted one.
const triesEach = 100

// FreeAddresses returns n free loopback addresses, for servers whose address must be known before they listen: servers
// of a cluster name each other, and a restarted server must have its old address.
func FreeAddresses(tb testing.TB, n int) []string {
	tb.Helper()
	all, err := FindAddresses(n)
	if err != nil {
		tb.Fatal(err)
	}
	return all
}

// FindAddresses is [FreeAddresses] for load tests. It tries random ports, so that tests and load tests that run at the
// same time do not find the same ones.
func FindAddresses(n int) ([]string, error) { return freePorts(lowest, highest, n) }

// freePorts returns n loopback addresses with free ports from low to high-1.
func freePorts(low, high, n int) (all []string, err error) {
	for tries := 0; len(all) < n; tries++ {
		if tries == triesEach*n {
			return nil, fmt.Errorf("only %d of %d free ports were found from %d to %d", len(all), n, low, high)
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(low+rand.N(high-low)))
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		defer l.Close() // keep all of them until the last one is found, so that they differ
		all = append(all, address)
	}
	return all, nil
}
