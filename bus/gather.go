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
	// gatherMost is how much may wait to be written before those who write wait too, and
	// gatherLimit how much may wait for a server elsewhere that takes nothing.
	gatherMost  = 1 << 20
	gatherLimit = 64 << 20
	// writeSoon is how long they wait for a server elsewhere: a call must end by its
	// deadline whatever that server does, and nobody else can speak meanwhile.
	writeSoon = 20 * time.Millisecond
	// gatherKept bounds the room that is kept for what comes next.
	gatherKept = 256 << 10
	// writeTime is how long one write to a server elsewhere may take.
	writeTime = time.Minute
	// lastTime is how long a connection that is closed may take to write the rest.
	lastTime = 250 * time.Millisecond
	// aloneMost is how many writes are made as they come, at most, before it is tried
	// again whether others have something to add.
	aloneMost = 63
)

// gathered is a connection that writes what many goroutines say at once: a write
// takes longer than all the rest of a call's way through this process. Write, and
// publish for those who have an [Outlet], only take over, and a goroutine of the
// connection's own writes, after it has let those run who are ready to. A failure
// shows at the next Write, or by the connection being closed. Where that was in
// vain, because there is only one who speaks, the next writes are made as they come.
type gathered struct {
	net.Conn
	timeout time.Duration // of one write; 0: none
	ended   chan struct{} // closed when nothing is written any more
	heard   atomic.Uint64 // how often something came
	// greeting is what the client and the server say first; nil: it takes no time.
	greeting *greeting

	mu      sync.Mutex // guards what follows
	change  sync.Cond
	waiting []byte // to be written
	said    int    // how often something was added to it
	spare   []byte // room for what waits next
	own     []byte // room for a message that is written by who has it
	err     error
	writing bool // somebody is
	closing bool
	stuck   bool // somebody waited for room in vain
	begun   bool // something was written
	bare    bool // it began in words of NATS: nothing else is wrapped around them
	alone   int  // so many writes are made by who has something to say
	vain    int  // so many it was when nobody had anything to add last; 0: somebody had
}

// gather begins to gather what is written to conn, once there is something to
// gather: a program that asks once and ends writes as it comes.
func gather(conn net.Conn, timeout time.Duration) *gathered {
	g := &gathered{Conn: conn, timeout: timeout, ended: make(chan struct{}), alone: aloneMost}
	g.change.L = &g.mu
	go g.write()
	return g
}

// errClogged: the server takes nothing, and no more can wait for it.
var errClogged = fmt.Errorf("%d MiB wait to be sent, and the server accepts nothing", gatherLimit>>20)

// errNoGreeting: the server did not say in time what it says first.
var errNoGreeting = errors.New("the server did not send its INFO in time")

// errLeft: the client made another connection.
var errLeft = errors.New("the client moved to another connection")

// connect begins what a client says first, if nothing is wrapped around it.
const connect = "CONNECT "

// Write takes p over. It waits only while very much is to be written already.
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

// errWrapped says that what is written to a connection is not what its peer reads.
var errWrapped = errors.New("the connection is not a bare one")

// publish is Write for a message that no client has written down.
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

// admit waits for room, and says why nothing that is so long can be written. The
// lock is held, as in what follows.
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

// asItComes reports whether who has something to say writes it.
func (g *gathered) asItComes() bool {
	if g.alone == 0 || len(g.waiting) > 0 || g.writing {
		return false
	}
	g.alone--
	return true
}

// waken tells the goroutine that writes that there will be something.
func (g *gathered) waken() {
	if len(g.waiting) == 0 {
		g.change.Broadcast()
	}
}

// room waits until there is some, but not for long for a server elsewhere.
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

// SetWriteDeadline does nothing: each write has the same time.
func (g *gathered) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline is for reading alone. A client sets one for what it and the server say
// first, which has the time that servers need lately.
func (g *gathered) SetDeadline(t time.Time) error {
	if g.greeting != nil {
		if t = g.greeting.deadline(t); t.IsZero() && g.greeting.vain {
			g.giveUp(errNoGreeting)
			return nil // nobody will read
		}
	}
	return g.SetReadDeadline(t)
}

// Close writes the rest, which takes no time unless the peer does not read, and
// closes the connection.
func (g *gathered) Close() error {
	g.mu.Lock()
	if !g.closing {
		g.closing = true
		_ = g.Conn.SetWriteDeadline(time.Now().Add(lastTime)) // a closed one needs none
		g.change.Broadcast()
	}
	g.mu.Unlock()
	<-g.ended
	return g.Conn.Close()
}

// write writes what waits until the connection is closed or breaks.
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
			g.vain = min(2*g.vain+1, aloneMost) // nobody had anything to add
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

// out writes p within that time, without the lock that is held. One at a time does. What
// cannot be written by who has something to say waits.
func (g *gathered) out(p []byte, within time.Duration) error {
	if within > 0 && !g.closing {
		_ = g.Conn.SetWriteDeadline(time.Now().Add(within)) // the write will say it
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

// fail ends the connection: whoever reads finds out, and connects anew.
func (g *gathered) fail(err error) {
	g.err = err
	_ = g.Conn.Close()
	g.change.Broadcast()
}

// giveUp is fail for whoever watches the connection.
func (g *gathered) giveUp(why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fail(why)
}

// Read says why, if the connection was ended here.
func (g *gathered) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if n > 0 {
		g.heard.Add(1)
	}
	if err != nil {
		if g.greeting != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			g.greeting.vain = true // it is read in turn, by who sets the deadline
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		err = cmp.Or(g.err, err)
	}
	return n, err
}

// A lastGathered knows the connection that was made last.
type lastGathered struct{ conn atomic.Pointer[gathered] }

// leave ends that one before another is made: the client leaves connections that came to
// nothing to the collector of garbage, which does not take what a goroutine writes to.
func (l *lastGathered) leave() {
	if g := l.conn.Swap(nil); g != nil {
		g.giveUp(errLeft)
	}
}

func (l *lastGathered) gather(conn net.Conn, timeout time.Duration, first *greeting) net.Conn {
	g := gather(conn, timeout)
	g.greeting = first
	l.conn.Store(g)
	return g
}

// gatheringDialer makes connections that gather what is written.
type gatheringDialer struct {
	patience patience
	from     netip.Addr // the zero Addr: the system chooses
	last     lastGathered
}

// Dial connects over the network.
func (d *gatheringDialer) Dial(network, address string) (net.Conn, error) {
	d.last.leave()
	how := net.Dialer{Timeout: d.patience.now()}
	if d.from.IsValid() {
		how.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(d.from, 0))
	}
	conn, err := how.Dial(network, address)
	if err != nil {
		if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
			d.patience.ended(true) // else only the greeting tells
		}
		return nil, err
	}
	return d.last.gather(conn, writeTime, &greeting{patience: &d.patience}), nil
}

// gatheringServer is a server in this process to which it is gathered.
type gatheringServer struct {
	server nats.InProcessConnProvider
	last   lastGathered
}

// InProcessConn connects in this process. That takes what it is given: there is no
// time limit for each write, which would cost a timer.
func (s *gatheringServer) InProcessConn() (net.Conn, error) {
	s.last.leave()
	conn, err := s.server.InProcessConn()
	if err != nil {
		return nil, err
	}
	return s.last.gather(conn, 0, nil), nil
}
