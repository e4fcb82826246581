package natsconn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// Config says how to connect.
type Config struct {
	// Timeout bounds the first attempts; later ones get up to [DialLimit].
	Timeout time.Duration
	// From is the local address; the zero Addr: the system chooses.
	From netip.Addr
	// InProcess is a server in this process; nil connects over the network.
	InProcess nats.InProcessConnProvider
	// Plain uses the client's own buffers and limits only.
	Plain bool
}

// A Connector makes the connections of one client.
type Connector struct {
	Config
	limit handshakeLimit
	last  atomic.Pointer[conn] // the newest connection; nil with Config.Plain
}

// New returns a Connector.
func New(c Config) *Connector {
	return &Connector{Config: c, limit: handshakeLimit{least: c.Timeout}}
}

// Options returns the options of a client with these connections.
func (c *Connector) Options() []nats.Option {
	opts := []nats.Option{nats.Timeout(c.Timeout), nats.SetCustomDialer(c), nats.CustomReconnectDelay(c.limit.pause)}
	if !c.Plain {
		opts = append(opts, nats.FlusherTimeout(0)) // conn bounds its writes
	}
	if c.InProcess != nil {
		opts = append(opts, nats.InProcessServer(c))
	}
	return opts
}

// connectorOf returns the Connector of a client; nil: it has none.
func connectorOf(nc *nats.Conn) *Connector {
	c, _ := nc.Opts.CustomDialer.(*Connector)
	return c
}

// Dial connects over the network.
func (c *Connector) Dial(network, address string) (net.Conn, error) {
	how := net.Dialer{Timeout: c.limit.next()}
	if c.From.IsValid() {
		how.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.From, 0))
	}
	made, err := c.replace(func() (net.Conn, error) { return how.Dial(network, address) }, writeTime)
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() && !c.Plain {
		c.limit.record(true) // conn records other timeouts
	}
	return made, err
}

// InProcessConn connects to the server in this process. The server always reads, so writes
// have no time limit, which would cost a timer each.
func (c *Connector) InProcessConn() (net.Conn, error) {
	return c.replace(c.InProcess.InProcessConn, 0)
}

// replace closes the last connection, because the client leaves failed ones open, and makes
// another one.
func (c *Connector) replace(connect func() (net.Conn, error), writeTime time.Duration) (net.Conn, error) {
	if old := c.last.Swap(nil); old != nil {
		old.abort(errReplaced)
	}
	made, err := connect()
	if err != nil || c.Plain {
		return made, err
	}
	wrapped := newConn(made, writeTime, &c.limit)
	c.last.Store(wrapped)
	return wrapped, nil
}

// Reconnects. A lost server is tried again without an end: first about every 200 to 400 ms,
// because a restart takes no longer, and then less often.
const (
	reconnectWait  = 200 * time.Millisecond
	reconnectSoon  = 5 // attempts
	reconnectLimit = 4 * time.Second
)

// DialLimit bounds one attempt to connect, after shorter attempts ran out of time.
const DialLimit = 16 * time.Second

// reconnectDelay returns how long to wait after so many attempts at all servers: a random
// time between the least delay and twice that, so that clients do not return at once.
func reconnectDelay(attempts int) time.Duration {
	least := reconnectWait
	for ; attempts > reconnectSoon && least < reconnectLimit/2; attempts-- {
		least = least * 3 / 2
	}
	least = min(least, reconnectLimit/2)
	return least + rand.N(least)
}

// A handshakeLimit is the time limit of one attempt to connect. It doubles from least to
// [DialLimit] with each attempt in a row that ran out of time. A client with several servers
// thus leaves a hanging one quickly. When all clients of a server return at once, the server
// gets the time that it needs; with a fixed limit it would work for clients that gave up.
type handshakeLimit struct {
	least time.Duration
	late  atomic.Int32 // attempts in a row that ran out of time
}

// next returns the limit of the next attempt.
func (l *handshakeLimit) next() time.Duration {
	d := l.least
	for range l.late.Load() {
		if d >= DialLimit {
			return DialLimit
		}
		d *= 2
	}
	return d
}

// pause returns how long to wait after so many attempts at all servers. After attempts that
// ran out of time it adds up to one limit, which spreads the load of the server.
func (l *handshakeLimit) pause(attempts int) time.Duration {
	d := reconnectDelay(attempts)
	if l.late.Load() > 0 {
		d += rand.N(l.next())
	}
	return d
}

// record records the end of an attempt, and whether it ran out of time.
func (l *handshakeLimit) record(late bool) {
	if late {
		l.late.Add(1)
		return
	}
	l.late.Store(0)
}

// A client that knows several servers checks every checkEvery whether its server still
// answers, and leaves one that was silent for silentFor. That is soon enough for the next
// call to be answered in time, and late enough to stay with a server that is only busy. A
// client that knows one server stays with it.
const (
	checkEvery = 2 * time.Second
	silentFor  = 3 * time.Second
	// lateFor is how late the end of silentFor may be noticed. If it is noticed later, this
	// process itself was suspended.
	lateFor = time.Second
)

// errSilent is why the client leaves a server.
var errSilent = fmt.Errorf("the server did not answer for %v, and the client knows another one", silentFor)

// Watch checks the remote server of nc from time to time, until nc is closed.
func (c *Connector) Watch(nc *nats.Conn) {
	if c.Plain || c.InProcess != nil || nc.IsClosed() {
		return
	}
	time.AfterFunc(checkEvery, func() {
		if conn := c.last.Load(); conn != nil && nc.IsConnected() && len(nc.Servers()) > 1 && conn.isSilent(nc) {
			conn.abort(errSilent)
		}
		c.Watch(nc)
	})
}

// isSilent reports whether nothing arrives from the server within silentFor. Any data counts,
// because the answer to the ping queues behind it.
func (c *conn) isSilent(nc *nats.Conn) bool {
	began, reads := time.Now(), c.reads.Load()
	ctx, cancel := context.WithTimeout(context.Background(), silentFor)
	defer cancel()
	err := nc.FlushWithContext(ctx)
	return errors.Is(err, context.DeadlineExceeded) && c.reads.Load() == reads && time.Since(began) < silentFor+lateFor
}
