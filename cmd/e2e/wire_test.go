package e2e_test

import (
	"net"
	"sync"
	"testing"
)

// A wire is what lies between a process and a server. It can be held, so that
// nothing arrives any more while everybody believes to be connected, and cut.
type wire struct {
	listener net.Listener
	server   string
	done     sync.WaitGroup

	mu    sync.Mutex // guards what follows
	flow  chan struct{}
	down  bool
	ended bool
	ends  map[net.Conn]struct{}
}

// startWire makes a wire to a server's address until the test ends.
func startWire(t testing.TB, server string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: l, server: server, flow: make(chan struct{}), ends: make(map[net.Conn]struct{})}
	close(w.flow)
	w.done.Go(w.accept)
	t.Cleanup(func() {
		_ = l.Close()
		w.mu.Lock()
		w.ended = true
		w.mu.Unlock()
		w.cut()
		w.resume()
		w.done.Wait()
	})
	return w
}

// hold keeps back what is sent from now on, in both directions.
func (w *wire) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flow = make(chan struct{})
}

// cut ends all connections and lets none be made.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = true
	for c := range w.ends {
		_ = c.Close()
	}
}

// resume lets everything through again, what was held back included.
func (w *wire) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = false
	select {
	case <-w.flow:
	default:
		close(w.flow)
	}
}

func (w *wire) accept() {
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

// add notes the two ends of a connection, unless none may be made.
func (w *wire) add(near, far net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down || w.ended {
		return false
	}
	w.ends[near], w.ends[far] = struct{}{}, struct{}{}
	return true
}

// carry brings what comes from one end to the other.
func (w *wire) carry(from, to net.Conn) {
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
