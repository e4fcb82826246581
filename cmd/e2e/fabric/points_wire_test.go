package fabric_test

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
)

// A wire carries the connections of one process. A cut wire holds data in both directions until it is mended, as a
// network with retransmissions does. A torn wire stands for a dead process: data in transit is lost, and new
// connections fail.
type wire struct {
	dial nats.InProcessConnProvider
	// sees is called with data before it is carried; nil: no call. It may cut or tear the wire.
	sees func(out bool, what []byte)

	mu    sync.Mutex // guards what follows
	moved *sync.Cond
	held  bool
	torn  bool
	ends  []net.Conn
	work  sync.WaitGroup
}

var errNoWire = errors.New("there is no way to the server")

func newWire(dial nats.InProcessConnProvider, sees func(bool, []byte)) *wire {
	w := &wire{dial: dial, sees: sees}
	w.moved = sync.NewCond(&w.mu)
	return w
}

// InProcessConn connects to the server by the wire.
func (w *wire) InProcessConn() (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held || w.torn {
		return nil, errNoWire
	}
	server, err := w.dial.InProcessConn()
	if err != nil {
		return nil, err
	}
	mine, theirs := net.Pipe()
	w.ends = append(w.ends, theirs, server)
	w.carry(theirs, server, true)
	w.carry(server, theirs, false)
	return mine, nil
}

// cut holds all data that is sent from now on, until mend.
func (w *wire) cut()  { w.set(func() { w.held = true }) }
func (w *wire) mend() { w.set(func() { w.held = false }) }

// tear ends the wire, at once.
func (w *wire) tear() {
	w.set(func() {
		w.torn = true
		for _, c := range w.ends {
			_ = c.Close() // that is all there is to it
		}
	})
}

// done waits until nothing is carried any more.
func (w *wire) done() {
	w.tear()
	w.work.Wait()
}

func (w *wire) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	w.moved.Broadcast()
}

// A strand carries one direction of one connection.
type strand struct {
	wire     *wire
	from, to net.Conn
	out      bool
	waiting  [][]byte // guarded by the wire's mu
	ended    bool     // nothing more comes; guarded by the wire's mu
	tail     []byte   // of what was shown last
}

// carry begins to carry what comes from one end to the other.
func (w *wire) carry(from, to net.Conn, out bool) {
	s := &strand{wire: w, from: from, to: to, out: out}
	w.work.Go(s.take)
	w.work.Go(s.give)
}

// take reads all data at once, because the sender must not notice a cut.
func (s *strand) take() {
	buf := make([]byte, 16<<10)
	for {
		n, err := s.from.Read(buf)
		s.wire.set(func() {
			if n > 0 {
				s.waiting = append(s.waiting, bytes.Clone(buf[:n]))
			}
			s.ended = err != nil
		})
		if err != nil {
			return
		}
	}
}

func (s *strand) give() {
	defer s.to.Close()
	for {
		what, ok := s.next()
		if !ok {
			return
		}
		s.show(what)
		if !s.pass() {
			return
		}
		if _, err := s.to.Write(what); err != nil {
			_ = s.from.Close() // the sender gets an error at its next write
			return
		}
	}
}

// next waits for what is to be carried.
func (s *strand) next() ([]byte, bool) {
	w := s.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.torn && (w.held || len(s.waiting) == 0 && !s.ended) {
		w.moved.Wait()
	}
	if w.torn || len(s.waiting) == 0 {
		return nil, false
	}
	what := s.waiting[0]
	s.waiting = s.waiting[1:]
	return what, true
}

// pass waits until the wire carries, and reports whether it ever will.
func (s *strand) pass() bool {
	w := s.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.held && !w.torn {
		w.moved.Wait()
	}
	return !w.torn
}

// longest is how much is shown again, so that nothing is missed because it came
// in two parts.
const longest = 64

func (s *strand) show(what []byte) {
	if s.wire.sees == nil {
		return
	}
	all := slices.Concat(s.tail, what)
	s.tail = all[max(0, len(all)-longest):]
	s.wire.sees(s.out, all)
}
