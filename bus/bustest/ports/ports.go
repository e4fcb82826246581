// Package ports finds addresses for the servers of tests and load tests that must be
// known before they listen: those of a cluster name each other, and one that is killed
// comes back to where its clients look for it.
package ports

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Where Free looks: below the ports from which systems take those of connections, or
// one of those might have the port before it is listened on, or while its server is dead.
const (
	lowest  = 20_000
	highest = 32_000
)

// triesEach is how many ports are looked at for each that is wanted.
const triesEach = 100

// Free finds so many addresses of the loopback interface that nobody listens on. It
// looks at random, so that tests and load tests that run at the same time do not find
// the same ones.
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
		defer l.Close() // all are kept until the last is found, so that they differ
		all = append(all, address)
	}
	return all, nil
}
