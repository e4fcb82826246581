package bus

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// gatherMost is how many bytes may wait before writers wait too. gatherLimit is how many
	// may wait for a remote server that accepts nothing.
	gatherMost  = 1 << 20
	gatherLimit = 64 << 20
	// writeSoon bounds a write by a caller to a remote server. A call must end by its deadline
	// however slow the server is, and other callers wait during this time.
	writeSoon = 20 * time.Millisecond
	// gatherKept bounds the buffer that is reused.
	gatherKept = 256 << 10
	// writeTime bounds one write to a remote server.
	writeTime = time.Minute
	// lastTime bounds the last write of a closed connection.
	lastTime = 250 * time.Millisecond
	// aloneMost bounds how many writes in a row callers make themselves, before the
	// connection tries again to combine writes.
	aloneMost = 63
)

// A gathered is a connection that combines the writes of many goroutines, because a write
// takes longer than all other steps of a call in this process. Write, and publish for an
// [Outlet], append to a buffer. The connection's own goroutine first lets other runnable
// goroutines run, and then writes the buffer. An error appears at the next Write, or closes
// the connection. While only one goroutine writes, combining gains nothing, and it writes itself.
type gathered struct {
	net.Conn
	timeout time.Duration // of one write; 0: unlimited
	ended   chan struct{} // closed when the write goroutine has ended
	heard   atomic.Uint64 // number of reads with data
	// greeting is the exchange of client and server at the start; nil: it has no time limit.
	greeting *handshake

	mu      sync.Mutex // guards the following fields
	change  sync.Cond
	waiting []byte // to be written
	said    int    // number of additions to waiting
	spare   []byte // empty buffer for waiting
	own     []byte // buffer for a message that its caller writes
	err     error
	writing bool // a write is running
	closing bool
	stuck   bool // a caller waited for space in vain
	begun   bool // something was written
	bare    bool // the first write was in the NATS protocol: there is no TLS around it
	alone   int  // number of next writes that callers make themselves
	vain    int  // the last value of alone after a write that combined nothing; 0: it combined some
}

// gather wraps conn. The first aloneMost writes are made by the callers, because a program
// that asks once and ends gains nothing from the goroutine.
func gather(conn net.Conn, timeout time.Duration) *gathered {
	g := &gathered{Conn: conn, timeout: timeout, ended: make(chan struct{}), alone: aloneMost}
	g.change.L = &g.mu
	go g.write()
	return g
}

// errClogged is the error of a server that accepts nothing while gatherLimit bytes wait.
var errClogged = fmt.Errorf("%d MiB wait to be sent, and the server accepts nothing", gatherLimit>>20)

// errNoGreeting is the error of a server that did not send its INFO in time.
var errNoGreeting = errors.New("the server did not send its INFO in time")

// errLeft is the error of a connection that the client has replaced.
var errLeft = errors.New("the client moved to another connection")

// connect begins the first message of a client on a connection without TLS.
const connect = "CONNECT "

// Write takes p over. It waits only while more than gatherMost bytes wait.
func (g *gathered) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.begun {
		g.begun, g.bare = true, bytes.HasPrefix(p, []byte(connect))
	}
	if err := g.admit(len(p)); err != nil {
		return 0, err
	}
	if g.asItComes() {
		return len(p), g.out(p, min(g.timeout, writeSoon))
	}
	g.waken()
	g.waiting = append(g.waiting, p...)
	g.said++
	return len(p), nil
}

// errWrapped is the error of a connection inside TLS, where an Outlet cannot write.
var errWrapped = errors.New("the connection is not a bare one")

// publish is Write for a message of an Outlet, which it encodes.
func (g *gathered) publish(m *Message) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.bare {
		return errWrapped
	}
	if err := g.admit(len(m.Header) + len(m.Data)); err != nil {
		return err
	}
	if g.asItComes() {
		p := m.write(g.own[:0])
		if g.own = p[:0]; cap(p) > gatherKept {
			g.own = nil
		}
		return g.out(p, min(g.timeout, writeSoon))
	}
	g.waken()
	g.waiting = m.write(g.waiting)
	g.said++
	return nil
}

// admit waits for space, and returns an error if size more bytes cannot be written. It
// holds the lock, as do the functions below.
func (g *gathered) admit(size int) error {
	g.room()
	switch {
	case g.err == nil && g.timeout > 0 && len(g.waiting)+size > gatherLimit:
		g.fail(errClogged)
	case g.err == nil && g.closing:
		return net.ErrClosed
	}
	return g.err
}

// asItComes reports whether the caller writes its message itself.
func (g *gathered) asItComes() bool {
	if g.alone == 0 || len(g.waiting) > 0 || g.writing {
		return false
	}
	g.alone--
	return true
}

// waken wakes the write goroutine before the first addition.
func (g *gathered) waken() {
	if len(g.waiting) == 0 {
		g.change.Broadcast()
	}
}

// room waits for space, but at most writeSoon for a remote server.
func (g *gathered) room() {
	if len(g.waiting) <= gatherMost || g.stuck {
		return
	}
	if g.timeout > 0 {
		t := time.AfterFunc(writeSoon, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.stuck = true
			g.change.Broadcast()
		})
		defer t.Stop()
	}
	for g.err == nil && !g.closing && !g.stuck && len(g.waiting) > gatherMost {
		g.change.Wait()
	}
}

// SetWriteDeadline does nothing: each write has the same time limit.
func (g *gathered) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline sets the read deadline only. The client sets one for the handshake, which is
// replaced by the current limit.
func (g *gathered) SetDeadline(t time.Time) error {
	if g.greeting != nil {
		if t = g.greeting.deadline(t); t.IsZero() && g.greeting.expired {
			g.giveUp(errNoGreeting)
			return nil // the connection is closed
		}
	}
	return g.SetReadDeadline(t)
}

// Close writes the waiting bytes, at most for lastTime, and closes the connection.
func (g *gathered) Close() error {
	g.mu.Lock()
	if !g.closing {
		g.closing = true
		_ = g.Conn.SetWriteDeadline(time.Now().Add(lastTime)) // fails only on a closed connection
		g.change.Broadcast()
	}
	g.mu.Unlock()
	<-g.ended
	return g.Conn.Close()
}

// write writes waiting bytes until the connection is closed or breaks.
func (g *gathered) write() {
	defer close(g.ended)
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.err == nil {
		for g.err == nil && (g.writing || len(g.waiting) == 0 && !g.closing) {
			g.change.Wait()
		}
		if g.err != nil || len(g.waiting) == 0 {
			return
		}
		g.mu.Unlock()
		runtime.Gosched()
		g.mu.Lock()
		p := g.waiting
		g.waiting, g.spare = g.spare[:0], nil
		if g.said > 1 {
			g.vain = 0
		} else {
			g.vain = min(2*g.vain+1, aloneMost) // nothing was combined
		}
		g.said, g.alone = 0, g.vain
		if g.out(p, g.timeout) == nil && len(g.waiting) <= gatherMost {
			g.stuck = false
		}
		if cap(p) <= gatherKept {
			g.spare = p[:0]
		}
	}
}

// out writes p within a time limit, and releases the lock while it writes. Bytes that a
// caller could not write in time go back to the buffer.
func (g *gathered) out(p []byte, within time.Duration) error {
	if within > 0 && !g.closing {
		_ = g.Conn.SetWriteDeadline(time.Now().Add(within)) // the write returns the error
	}
	g.writing = true
	g.mu.Unlock()
	n, err := g.Conn.Write(p)
	g.mu.Lock()
	g.writing = false
	if within < g.timeout && errors.Is(err, os.ErrDeadlineExceeded) {
		g.waiting, g.alone, err = slices.Concat(p[n:], g.waiting), 0, nil
	}
	if err != nil {
		g.fail(err)
	}
	if err != nil || g.closing || len(g.waiting) > 0 || len(p) > gatherMost {
		g.change.Broadcast()
	}
	return err
}

// fail closes the connection. Its reader gets the error, and the client reconnects.
func (g *gathered) fail(err error) {
	g.err = err
	_ = g.Conn.Close()
	g.change.Broadcast()
}

// giveUp is fail for callers without the lock.
func (g *gathered) giveUp(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fail(why)
}

// Read returns the reason if this process has ended the connection.
func (g *gathered) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if n > 0 {
		g.heard.Add(1)
	}
	if err != nil {
		if g.greeting != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			g.greeting.expired = true // the goroutine that sets the deadline reads, too
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		err = cmp.Or(g.err, err)
	}
	return n, err
}

// A lastGathered holds the newest connection.
type lastGathered struct{ conn atomic.Pointer[gathered] }

// leave closes that connection before another is made. The client leaves failed connections
// to the garbage collector, which cannot collect one with a running write goroutine.
func (l *lastGathered) leave() {
	if g := l.conn.Swap(nil); g != nil {
		g.giveUp(errLeft)
	}
}

func (l *lastGathered) gather(conn net.Conn, timeout time.Duration, first *handshake) net.Conn {
	g := gather(conn, timeout)
	g.greeting = first
	l.conn.Store(g)
	return g
}

// A gatheringDialer makes gathered connections.
type gatheringDialer struct {
	timeout connectTimeout
	from    netip.Addr // the zero Addr: the system chooses
	last    lastGathered
}

// Dial connects over the network.
func (d *gatheringDialer) Dial(network, address string) (net.Conn, error) {
	d.last.leave()
	how := net.Dialer{Timeout: d.timeout.next()}
	if d.from.IsValid() {
		how.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(d.from, 0))
	}
	conn, err := how.Dial(network, address)
	if err != nil {
		if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
			d.timeout.record(true) // other timeouts are recorded by the handshake
		}
		return nil, err
	}
	return d.last.gather(conn, writeTime, &handshake{timeout: &d.timeout}), nil
}

// A gatheringServer makes gathered connections to a server in this process.
type gatheringServer struct {
	server nats.InProcessConnProvider
	last   lastGathered
}

// InProcessConn connects to the server. The server always reads, so writes have no time
// limit, which would cost a timer each.
func (s *gatheringServer) InProcessConn() (net.Conn, error) {
	s.last.leave()
	conn, err := s.server.InProcessConn()
	if err != nil {
		return nil, err
	}
	return s.last.gather(conn, 0, nil), nil
}
