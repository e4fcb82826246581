//go:build linux

package lan

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"
)

// TestMain runs the tests in a network of their own, where that can be had.
func TestMain(m *testing.M) {
	if IsAlone() || Possible() != nil {
		os.Exit(m.Run())
	}
	code, err := Alone(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// said dials from one host, or nobody's, to another and tells what comes back.
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

// greeter listens on a host and greets whoever comes.
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
	if err := Possible(); err != nil {
		t.Skipf("NETWORKS THAT ARE CUT ARE NOT TESTED: %v", err)
	}
	l, err := Open(3)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	one, two, three := l.Hosts()[0], l.Hosts()[1], l.Hosts()[2]
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
	for _, way := range []struct{ from, to *Host }{{one, two}, {two, one}} {
		if err := way.from.Lose(way.to); err != nil {
			t.Fatal(err)
		}
		reached(one, false)
		reached(three, true)
		reached(nil, true)
		if err := way.from.Reach(way.to); err != nil {
			t.Fatal(err)
		}
		reached(one, true)
	}
}

func TestTheMachinesOwnNetworkIsLeftAlone(t *testing.T) {
	t.Setenv(marker, "")
	if l, err := Open(1); err == nil {
		t.Errorf("it made %v", l)
	}
}
