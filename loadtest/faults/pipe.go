package faults

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// direction is one way of a connection.
type direction int

const (
	there direction = iota // from the client to the server
	back
)

const (
	// pieceSize is how much is read at most before it goes on.
	pieceSize = 16 << 10
	// onTheWay is how many pieces may be on their way in one direction of one
	// connection; who writes more waits, as for any network.
	onTheWay = 64
)

// pair is the two ends of a connection that is carried.
type pair struct {
	client net.Conn

	mu     sync.Mutex // guards what follows
	server net.Conn
	gone   bool
}

// to sets the server's end; a pair that was closed meanwhile takes none.
func (p *pair) to(server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		_ = server.Close() // nobody has written to it
		return false
	}
	p.server = server
	return true
}

// reset closes both ends without a word.
func (p *pair) reset() {
	p.end(func(c net.Conn) {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // a connection that has ended already is as good
		}
	})
}

// close closes both ends.
func (p *pair) close() { p.end(func(net.Conn) {}) }

func (p *pair) end(first func(net.Conn)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	for _, c := range []net.Conn{p.client, p.server} {
		if c != nil {
			first(c)
			_ = c.Close() // it may be closed already
		}
	}
}

// pipe is one direction of one connection.
type pipe struct {
	link *Link
	way  direction
	from net.Conn
	to   net.Conn
	// queue is what is on its way while the link is slow; waiting counts it. As
	// long as it is empty, who reads writes as well: an untouched link costs one
	// wake-up.
	queue   chan piece
	waiting atomic.Int64
}

// piece is something that is on its way.
type piece struct {
	body []byte
	read time.Time
	// extra is what it takes longer while the link has a latency.
	extra time.Duration
}

func newPipe(k *Link, way direction, from, to net.Conn) *pipe {
	return &pipe{link: k, way: way, from: from, to: to, queue: make(chan piece, onTheWay)}
}

// run carries until one end has closed or nothing can be carried any more, which
// ends both directions.
func (p *pipe) run(both *pair) {
	var writer sync.WaitGroup
	writer.Go(func() {
		for piece := range p.queue {
			if !p.write(piece) {
				both.reset()
			}
			p.waiting.Add(-1)
		}
	})
	ok := p.read()
	close(p.queue)
	writer.Wait()
	if !ok || !p.link.pass(atOnce) {
		both.reset()
		return
	}
	if c, half := p.to.(interface{ CloseWrite() error }); half && c.CloseWrite() == nil {
		return // the other direction goes on
	}
	both.close()
}

// read takes what comes until the end of it; false: the end is not a good one.
func (p *pipe) read() bool {
	buffer := make([]byte, pieceSize)
	for {
		n, err := p.from.Read(buffer)
		if n > 0 && !p.take(buffer[:n]) {
			return false
		}
		if err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

// take writes what was read, or puts it on its way.
func (p *pipe) take(body []byte) bool {
	c, _ := p.link.conditions()
	if p.waiting.Load() == 0 && c == (Conditions{}) {
		_, err := p.to.Write(body)
		return err == nil
	}
	p.waiting.Add(1)
	p.queue <- piece{body: append([]byte(nil), body...), read: time.Now(), extra: c.jittered()}
	return true
}

// write waits for a piece's time and hands it on.
func (p *pipe) write(piece piece) bool {
	arrived := p.link.pass(func(c Conditions) time.Time {
		if c.Latency == 0 {
			return piece.read
		}
		return piece.read.Add(piece.extra)
	})
	if !arrived {
		return false
	}
	carried := p.link.carried(p.way, len(piece.body))
	arrived = p.link.pass(func(c Conditions) time.Time {
		if c.Rate == 0 {
			return piece.read
		}
		return carried
	})
	if !arrived {
		return false
	}
	_, err := p.to.Write(piece.body)
	return err == nil
}
