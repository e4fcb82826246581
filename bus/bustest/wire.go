package bustest

import (
	"net"
	"sync"
	"testing"
)

// A Wire is a network path between clients and a server. It can be held, so that no data arrives although the
// connections are open, and cut.
type Wire struct {
	listener net.Listener
	server   string
	done     sync.WaitGroup

	mu    sync.Mutex // guards the following fields
	flow  chan struct{}
	down  bool
	ended bool
	ends  map[net.Conn]struct{}
}

// StartWire makes a wire to a server's address until the test ends.
func StartWire(t testing.TB, server string) *Wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &Wire{listener: l, server: server, flow: make(chan struct{}), ends: make(map[net.Conn]struct{})}
	close(w.flow)
	w.done.Go(w.accept)
	t.Cleanup(func() {
		_ = l.Close()
		w.mu.Lock()
		w.ended = true
		w.mu.Unlock()
		w.Cut()
		w.Resume()
		w.done.Wait()
	})
	return w
}

// Addr returns the address for clients.
func (w *Wire) Addr() string { return w.listener.Addr().String() }

// Hold holds back data in both directions.
func (w *Wire) Hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flow = make(chan struct{})
}

// Cut closes all connections and rejects new ones.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = true
	for c := range w.ends {
		_ = c.Close()
	}
}

// Resume forwards data again, including the data that was held back.
func (w *Wire) Resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = false
	select {
	case <-w.flow:
	default:
		close(w.flow)
	}
}

func (w *Wire) accept() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.server)
		if err != nil || !w.add(near, far) {
			_ = near.Close()
			if far != nil {
				_ = far.Close()
			}
			continue
		}
		w.done.Go(func() { w.carry(near, far) })
		w.done.Go(func() { w.carry(far, near) })
	}
}

// add adds the two ends of a connection, unless the wire is cut.
func (w *Wire) add(near, far net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down || w.ended {
		return false
	}
	w.ends[near], w.ends[far] = struct{}{}, struct{}{}
	return true
}

// carry forwards data from one end to the other.
func (w *Wire) carry(from, to net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		w.mu.Lock()
		flow := w.flow
		w.mu.Unlock()
		<-flow
		if n > 0 && err == nil {
			_, err = to.Write(buf[:n])
		}
		if err != nil {
			break
		}
	}
	_, _ = from.Close(), to.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ends, from)
	delete(w.ends, to)
}
