package webhook

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

const (
	// maxConns limits the connections of one hook: a worker's default number of calls.
	// Further calls wait for one.
	maxConns = 64
	// idle is how long a connection is kept for the next call. Common servers close
	// connections after 5 s. A request sent at that moment is lost, because it is unknown
	// whether the server read it.
	idle = 4 * time.Second
	// connecting limits each step of making a connection.
	connecting = 10 * time.Second
	// silence is how long an HTTP/2 connection with calls may be silent before it is
	// tested, and the limit of the test. All calls share it.
	silence = 5 * time.Second
	// maxHeaders limits the headers of a server.
	maxHeaders = 64 << 10
)

// A pool has the connections of one hook.
type pool struct {
	*http.Transport
	close context.CancelFunc
}

// newPool makes a pool whose connections are closed when open ends or the pool is closed.
func newPool(open context.Context, config *tls.Config) pool {
	open, end := context.WithCancel(open)
	dialer := &net.Dialer{Timeout: connecting}
	t := &http.Transport{
		Proxy: nil, // only addresses from the configuration are contacted
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &tied{Conn: conn, untie: context.AfterFunc(open, func() { _ = conn.Close() })}, nil
		},
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    connecting,
		DisableCompression:     true,
		MaxIdleConns:           maxConns,
		MaxIdleConnsPerHost:    maxConns,
		MaxConnsPerHost:        maxConns,
		IdleConnTimeout:        idle,
		MaxResponseHeaderBytes: maxHeaders,
		Protocols:              new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: schema.MaxResult,
			MaxReceiveBufferPerStream:     schema.MaxResult,
			SendPingTimeout:               silence,
			PingTimeout:                   silence,
		},
	}
	t.Protocols.SetHTTP1(true)
	t.Protocols.SetHTTP2(true)
	return pool{Transport: t, close: end}
}

// tied is a connection that is closed with its pool, in any state.
type tied struct {
	net.Conn
	untie func() bool
}

func (c *tied) Close() error {
	c.untie()
	return c.Conn.Close()
}
