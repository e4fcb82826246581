package natsconn

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// softLimit is how many bytes may be pending before writers wait. hardLimit is how many
	// may be pending for a remote server that accepts nothing.
	softLimit = 1 << 20
	hardLimit = 64 << 20
	// callerTime bounds how long a caller waits for a remote server. A call must end by its
	// deadline however slow the server is, and other callers wait during this time.
	callerTime = 20 * time.Millisecond
	// writeTime bounds one write to a remote server, and closeTime the last one.
	writeTime = time.Minute
	closeTime = 250 * time.Millisecond
	// maxSpare bounds the buffer that is reused.
	maxSpare = 256 << 10
	// maxDirect bounds how many messages in a row callers write themselves, before the
	// connection tries again to combine messages.
	maxDirect = 63
)

var (
	errClogged   = fmt.Errorf("%d MiB wait to be sent, and the server accepts nothing", hardLimit>>20)
	errHandshake = errors.New("the server did not complete the handshake in time")
	errReplaced  = errors.New("the client moved to another connection")
)

// A conn is a connection that combines the messages of many goroutines into one write, because
// a write takes longer than all other steps of a call in this process. A goroutine first lets
// other runnable goroutines add their messages, and then writes all of them. An error appears
// at the next write, or closes the connection. While only one goroutine sends, combining gains
// nothing, and that goroutine writes itself.
type conn struct {
	net.Conn
	writeTime time.Duration // bounds a write; 0: unlimited
	limit     *handshakeLimit
	reads     atomic.Uint64 // number of reads with data

	mu          sync.Mutex // guards the following fields
	changed     sync.Cond  // there is space, the writer ended, or the connection ended
	handshaking bool
	closing     bool
	writing     bool // a caller or the goroutine flush writes
	slow        bool // a caller waited for space, and there was none
	err         error
	outbox
}

// An outbox holds the messages that are to be written.
type outbox struct {
	pending    []byte
	messages   int    // number of messages in pending
	spare      []byte // empty buffer for pending
	direct     int    // number of next messages that callers write themselves
	nextDirect int    // direct after a write that combined nothing
}

// newConn wraps c. Callers write the first messages themselves, because a program that asks
// once and ends gains nothing from combining.
func newConn(c net.Conn, writeTime time.Duration, limit *handshakeLimit) *conn {
	wrapped := &conn{Conn: c, writeTime: writeTime, limit: limit, outbox: outbox{direct: maxDirect}}
	wrapped.changed.L = &wrapped.mu
	return wrapped
}

// Write sends p. It waits only while more than softLimit bytes are pending.
func (c *conn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.admit(len(p)); err != nil {
		return 0, err
	}
	c.pending = append(c.pending, p...)
	return len(p), c.send()
}

// publish sends m.
func (c *conn) publish(m *Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.admit(len(m.Header) + len(m.Data)); err != nil {
		return err
	}
	c.pending = m.append(c.pending)
	return c.send()
}

// admit waits for space, and returns an error if size more bytes cannot be written. The caller
// holds the lock, as for all functions below that do not take it.
func (c *conn) admit(size int) error {
	c.awaitSpace()
	switch {
	case c.err == nil && c.writeTime > 0 && len(c.pending)+size > hardLimit:
		c.fail(errClogged)
	case c.err == nil && c.closing:
		return net.ErrClosed
	}
	return c.err
}

// awaitSpace waits until there is space, but at most callerTime for a remote server.
func (c *conn) awaitSpace() {
	if len(c.pending) <= softLimit || c.slow {
		return
	}
	if c.writeTime > 0 {
		t := time.AfterFunc(callerTime, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.slow = true
			c.changed.Broadcast()
		})
		defer t.Stop()
	}
	for c.err == nil && !c.closing && !c.slow && len(c.pending) > softLimit {
		c.changed.Wait()
	}
}

// send has the pending messages written, by the caller or by the goroutine flush.
func (c *conn) send() error {
	c.messages++
	if c.writing {
		return nil // the running writer takes them, too
	}
	c.writing = true
	var err error
	if c.direct > 0 {
		c.direct--
		err = c.writePending(min(c.writeTime, callerTime))
		if c.err != nil || len(c.pending) == 0 {
			c.writing = false
			c.changed.Broadcast()
			return err
		}
	}
	go c.flush()
	return err
}

// flush writes until nothing is pending.
func (c *conn) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.err == nil && len(c.pending) > 0 {
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
		if c.nextDirect = min(2*c.nextDirect+1, maxDirect); c.messages > 1 {
			c.nextDirect = 0
		}
		c.direct = c.nextDirect
		_ = c.writePending(c.writeTime) // c.err has the error
	}
	c.writing = false
	c.changed.Broadcast()
}

// writePending writes the pending bytes within a time limit, and releases the lock while it
// writes. Bytes that a caller could not write in time become pending again.
func (c *conn) writePending(within time.Duration) error {
	p := c.pending
	c.pending, c.spare, c.messages = c.spare[:0], nil, 0
	if within > 0 && !c.closing {
		_ = c.Conn.SetWriteDeadline(time.Now().Add(within)) // the write returns the error
	}
	c.mu.Unlock()
	n, err := c.Conn.Write(p)
	c.mu.Lock()
	if within < c.writeTime && errors.Is(err, os.ErrDeadlineExceeded) {
		c.pending, c.direct, err = slices.Concat(p[n:], c.pending), 0, nil
	}
	if cap(p) <= maxSpare {
		c.spare = p[:0]
	}
	if err != nil {
		c.fail(err)
	}
	c.slow = c.slow && len(c.pending) > softLimit
	c.changed.Broadcast()
	return err
}

// fail closes the connection. Its reader gets the error, and the client reconnects.
func (c *conn) fail(err error) {
	c.err = err
	_ = c.Conn.Close()
	c.changed.Broadcast()
}

// abort is fail for callers without the lock.
func (c *conn) abort(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(why)
}

// Close writes the pending bytes, at most for closeTime, and closes the connection.
func (c *conn) Close() error {
	c.mu.Lock()
	if !c.closing {
		c.closing = true
		_ = c.Conn.SetWriteDeadline(time.Now().Add(closeTime)) // fails only on a closed connection
		c.changed.Broadcast()
	}
	for c.writing && c.err == nil {
		c.changed.Wait()
	}
	c.mu.Unlock()
	return c.Conn.Close()
}

// SetWriteDeadline does nothing: each write has a time limit of its own.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// SetDeadline begins the handshake, with a limit in place of the client's, or ends it.
func (c *conn) SetDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !t.IsZero():
		t = time.Now().Add(c.limit.next())
		c.handshaking = true
	case c.handshaking:
		c.handshaking = false
		c.limit.record(false)
	}
	return c.SetReadDeadline(t)
}

// Read returns the reason if this process has ended the connection.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.reads.Add(1)
	}
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.handshaking && errors.Is(err, os.ErrDeadlineExceeded) {
			c.handshaking = false
			c.limit.record(true)
			c.fail(errHandshake) // the client leaves a failed connection open
		}
		err = cmp.Or(c.err, err)
	}
	return n, err
}

// A Message is a message to publish, with its headers in wire form, which saves a map.
type Message struct {
	Subject, Reply string
	// Header is a complete block of headers; empty: no headers.
	Header []byte
	Data   []byte
}

// Msg returns the message in the form of nats.go.
func (m *Message) Msg() *nats.Msg {
	msg := &nats.Msg{Subject: m.Subject, Reply: m.Reply, Data: m.Data}
	if len(m.Header) > 0 {
		msg.Header, _ = nats.DecodeHeadersMsg(m.Header) // always well-formed
	}
	return msg
}

// append appends m in the NATS protocol.
func (m *Message) append(b []byte) []byte {
	operation, size := "PUB ", len(m.Data)
	if len(m.Header) > 0 {
		operation, size = "HPUB ", len(m.Header)+len(m.Data)
	}
	b = append(append(append(b, operation...), m.Subject...), ' ')
	if m.Reply != "" {
		b = append(append(b, m.Reply...), ' ')
	}
	if len(m.Header) > 0 {
		b = append(strconv.AppendInt(b, int64(len(m.Header)), 10), ' ')
	}
	b = append(strconv.AppendInt(b, int64(size), 10), "\r\n"...)
	b = append(append(b, m.Header...), m.Data...)
	return append(b, "\r\n"...)
}

// A Publisher publishes faster than the client, which buffers a message under its lock and
// wakes a goroutine that writes it. A Publisher writes to the connection at once, unless the
// client has unwritten data: order and the effect of a flush stay those of the client's own
// Publish. Inside TLS and WebSocket, during a reconnect, and on a connection without a
// [Connector] it uses that Publish. It is safe for concurrent use.
type Publisher struct {
	nc        *nats.Conn
	connector *Connector // nil: only the client can publish
}

// NewPublisher returns the Publisher of nc.
func NewPublisher(nc *nats.Conn) *Publisher {
	p := &Publisher{nc: nc}
	if !slices.ContainsFunc(nc.Servers(), func(url string) bool { return strings.HasPrefix(url, "ws") }) {
		p.connector = connectorOf(nc)
	}
	return p
}

// Publish publishes m. As with the client's Publish, nil does not mean that m was received.
func (p *Publisher) Publish(m *Message) error {
	if p.connector != nil {
		// Load the connection before the state: the connection is then not newer than the state
		// shows, and writing to a replaced one fails.
		if c := p.connector.last.Load(); c != nil && p.isReady() && p.fits(m) && c.publish(m) == nil {
			return nil
		}
	}
	return p.nc.PublishMsg(m.Msg()) // returns the error, if there is one
}

// isReady reports whether the client is connected without TLS and has written all of its data.
func (p *Publisher) isReady() bool {
	if p.nc.Status() != nats.CONNECTED {
		return false
	}
	if _, err := p.nc.TLSConnectionState(); !errors.Is(err, nats.ErrConnectionNotTLS) {
		return false
	}
	n, err := p.nc.Buffered()
	return n == 0 && err == nil
}

// fits reports whether the server accepts m.
func (p *Publisher) fits(m *Message) bool {
	const separators = " \t\r\n"
	return int64(len(m.Header)+len(m.Data)) <= p.nc.MaxPayload() && (len(m.Header) == 0 || p.nc.HeadersSupported()) &&
		m.Subject != "" && !strings.ContainsAny(m.Subject, separators) && !strings.ContainsAny(m.Reply, separators)
}
