package peer

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestOnlyTheOwnUserAndRootAreNoStrangers(t *testing.T) {
	for name, c := range map[string]struct {
		uid, own int
		stranger bool
	}{
		"oneself":                {1000, 1000, false},
		"root":                   {0, 1000, false},
		"another user":           {1001, 1000, true},
		"a user, seen by root":   {1001, 0, true},
		"root, seen by root":     {0, 0, false},
		"nobody, seen by a user": {65534, 1000, true},
	} {
		t.Run(name, func(t *testing.T) {
			if err := allowed(c.uid, c.own); errors.Is(err, ErrStranger) != c.stranger {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestBothEndsOfASocketAreTold(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("this system does not tell who is at the other end: that the daemon is refused there stays untested")
	}
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			defer c.Close()
			err = CheckConn(c.(*net.UnixConn))
		}
		accepted <- err
	}()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := CheckConn(c.(*net.UnixConn)); err != nil {
		t.Error(err)
	}
	if err := <-accepted; err != nil {
		t.Error(err)
	}
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Check(int(f.Fd())); err == nil {
		t.Error("what is no socket is nobody's")
	}
}
