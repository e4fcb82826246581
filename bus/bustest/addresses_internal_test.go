package bustest

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestFreePortsAreOutsideOfThoseOfConnections(t *testing.T) {
	all, err := FindAddresses(20)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range all {
		host, port, err := net.SplitHostPort(address)
		if n, bad := strconv.Atoi(port); err != nil || bad != nil || host != "127.0.0.1" || n < lowest || n >= highest {
			t.Errorf("%s is not in the range", address)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
	if slices.Sort(all); len(slices.Compact(all)) != 20 {
		t.Errorf("some are the same: %v", all)
	}
}

func TestTooFewFreePortsAreAnError(t *testing.T) {
	one, err := FindAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(one[0])
	low, _ := strconv.Atoi(port)
	if all, err := freePorts(low, low+1, 2); err == nil || !strings.HasPrefix(err.Error(), "only 1 of 2 free ports") {
		t.Errorf("of one port: %v, %v", all, err)
	}
}
