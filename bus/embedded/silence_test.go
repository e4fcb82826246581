package embedded_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/embedded"
)

// A line passes what two servers say to each other until it is cut: then it keeps what
// comes, and the connections stay open, as those do through a network that lost its way.
type line struct {
	to    string
	cut   atomic.Bool
	ended chan struct{} // told by each connection that the one side closes
}

// serve takes connections until l is closed.
func (s *line) serve(l net.Listener) {
	for {
		near, err := l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", s.to)
		if err != nil {
			_ = near.Close()
			continue // it tries again
		}
		go s.pass(near, far)
	}
}

func (s *line) pass(near, far net.Conn) {
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(through{s, near}, far) })
	_, _ = io.Copy(through{s, far}, near)
	s.ended <- struct{}{}
	_, _ = near.Close(), far.Close()
	both.Wait()
}

// through is where a line ends.
type through struct {
	*line
	conn net.Conn
}

func (t through) Write(p []byte) (int, error) {
	if t.cut.Load() {
		return len(p), nil
	}
	return t.conn.Write(p)
}

// While a server has a connection to another it hands it requests: one that says
// nothing any more is left soon.
func TestAServerLeavesAnotherThatIsSilent(t *testing.T) {
	t.Parallel()
	routes := bustest.FreeAddresses(t, 2)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	s := &line{to: routes[1], ended: make(chan struct{}, 100)}
	go s.serve(l)
	a, b := member(t, routes, 0), member(t, routes, 1)
	a.Cluster.Routes = []string{l.Addr().String()}
	b.Cluster.Routes = routes[1:] // it is found by the other one
	startAll(t, []embedded.Options{a, b})
	for len(s.ended) > 0 {
		<-s.ended // each server closes connections that are one too many
	}
	s.cut.Store(true)
	began := time.Now()
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
		t.Fatal("it was not left within 20 s")
	}
	if d := time.Since(began); d < 2*time.Second {
		t.Errorf("it was left after %v, as if it had been slow for a moment", d)
	}
}
