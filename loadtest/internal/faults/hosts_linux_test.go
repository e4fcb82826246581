package faults

import (
	"errors"
	"net"
	"testing"
	"time"
)

// alone reports whether the test is in its own network. If not, it runs the test there.
func alone(t *testing.T) bool {
	t.Helper()
	if IsAlone() {
		return true
	}
	if err := HostsMissing(); err != nil {
		t.Skipf("HOSTS THAT ARE CUT OFF ARE NOT TESTED: %v", err)
	}
	code, err := Alone(t.Context(), []string{"-test.run=^" + t.Name() + "$", "-test.v"}, t.Output(), t.Output())
	if err != nil || code != 0 {
		t.Errorf("in its own network it ended with exit code %d, %v", code, err)
	}
	return false
}

// said dials from a host, or from outside all hosts if from is nil, and returns the text
// that it receives.
func said(from *Host, to net.Addr, timeout time.Duration) (text string, err error) {
	dial := func() error {
		c, err := net.DialTimeout("tcp", to.String(), timeout)
		if err != nil {
			return err
		}
		defer c.Close()
		hello := make([]byte, 5)
		_, err = c.Read(hello)
		text = string(hello)
		return err
	}
	if from == nil {
		return text, dial()
	}
	err = from.In(dial)
	return text, err
}

// greeter listens on a host and greets each client.
func greeter(t *testing.T, on *Host) net.Addr {
	t.Helper()
	var l net.Listener
	if err := on.In(func() (err error) {
		l, err = net.Listen("tcp", on.Addr()+":0")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("hello"))
			_ = c.Close()
		}
	}()
	return l.Addr()
}

func TestHostsAreCutOffAndComeBack(t *testing.T) {
	if !alone(t) {
		return
	}
	hosts, err := OpenHosts(3)
	if err != nil {
		t.Fatal(err)
	}
	one, two, three := hosts[0], hosts[1], hosts[2]
	at := greeter(t, two)
	reached := func(from *Host, want bool) {
		t.Helper()
		timeout := 300 * time.Millisecond
		if want {
			timeout = 20 * time.Second // it takes long only on a machine with other work
		}
		text, err := said(from, at, timeout)
		if late, _ := errors.AsType[net.Error](err); want != (text == "hello") || !want && (late == nil || !late.Timeout()) {
			t.Errorf("it heard %q, %v", text, err)
		}
	}
	reached(nil, true)
	reached(one, true)
	for _, way := range []struct {
		host            *Host
		sends, receives bool
	}{{one, true, false}, {two, false, true}, {two, true, true}} {
		if err := way.host.Part(way.sends, way.receives); err != nil {
			t.Fatal(err)
		}
		reached(one, false)
		reached(three, way.host == one)
		reached(nil, true)
		if err := way.host.Join(); err != nil {
			t.Fatal(err)
		}
		reached(one, true)
		reached(three, true)
	}
}

func TestTheMachinesOwnNetworkIsLeftAlone(t *testing.T) {
	t.Setenv(marker, "")
	if l, err := OpenHosts(1); err == nil {
		t.Errorf("it made %v", l)
	}
}
