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
	// pieceSize is the size limit of one read, in bytes.
	pieceSize = 16 << 10
	// onTheWay limits the pieces in transit in one direction of one connection. A client
	// that writes more waits, as in any network.
	onTheWay = 64
)

// pair has the two ends of a forwarded connection.
type pair struct {
	client net.Conn

	mu     sync.Mutex // guards what follows
	server net.Conn
	gone   bool
}

// to sets the server's end. If the pair was closed in the meantime, it closes the server's
// end and returns false.
func (p *pair) to(server net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		_ = server.Close() // nothing was written to it
		return false
	}
	p.server = server
	return true
}

// reset closes both ends with a TCP reset.
func (p *pair) reset() {
	p.end(func(c net.Conn) {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // a connection that has already ended needs no reset
		}
	})
}

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
	// queue has the pieces in transit while the link is slow; waiting counts them. While it
	// is empty, the reader also writes: an unaffected link costs one wake-up.
	queue   chan piece
	waiting atomic.Int64
}

// piece is data in transit.
type piece struct {
	body []byte
	read time.Time
	// extra is the random delay of the piece while the link has a latency.
	extra time.Duration
}

func newPipe(k *Link, way direction, from, to net.Conn) *pipe {
	return &pipe{link: k, way: way, from: from, to: to, queue: make(chan piece, onTheWay)}
}

// run forwards data until one end is closed or an error occurs. An error ends both
// directions.
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
		return // the other direction continues
	}
	both.close()
}

// read forwards data until its end. It returns false after an error.
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

// take writes data directly, or queues it.
func (p *pipe) take(body []byte) bool {
	p.link.bytes.Add(int64(len(body)))
	c, _ := p.link.conditions()
	if p.waiting.Load() == 0 && c == (Conditions{}) {
		_, err := p.to.Write(body)
		return err == nil
	}
	p.waiting.Add(1)
	p.queue <- piece{body: append([]byte(nil), body...), read: time.Now(), extra: c.jittered()}
	return true
}

// write waits until a piece is due and writes it.
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
