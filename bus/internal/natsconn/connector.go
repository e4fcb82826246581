package natsconn

import (
	"errors"
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
