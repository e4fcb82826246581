// Package ports finds addresses for servers of tests and load tests that must be known before the servers listen:
// servers of a cluster name each other, and a restarted server must have its old address.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The range of Free is below the ephemeral ports, because a connection could get the port before its server listens, or
// during a restart of the server.
const (
	lowest  = 20_000
	highest = 32_000
)

// triesEach bounds the ports that are tried for each wanted one.
const triesEach = 100

// Free returns n free loopback addresses. It tries random ports, so that tests and load tests that run at the same
// time do not find the same ones.
func Free(n int) ([]string, error) { return between(lowest, highest, n) }

func between(low, high, n int) (all []string, err error) {
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
