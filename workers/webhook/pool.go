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
	// maxConns is how many connections one hook has at most: as many as a worker
	// has calls by default. Further calls wait for one.
	maxConns = 64
	// idle is how long a connection is kept for the next call. It is less than
	// the 5 s after which common servers hang up: a request that crosses with
	// that is lost, since nobody knows whether it was read.
	idle = 4 * time.Second
	// connecting bounds each step of making a connection, whoever waits for it.
	connecting = 10 * time.Second
	// silence is how long an HTTP/2 connection under way may say nothing before
	// it is tested, and then may take to answer: all calls share it.
	silence = 5 * time.Second
	// maxHeaders bounds what a server may send before its answer.
	maxHeaders = 64 << 10
)

// A pool is the connections of one hook.
type pool struct {
	*http.Transport
	close context.CancelFunc
}

// newPool makes a pool whose connections end with open, or when it is closed.
func newPool(open context.Context, config *tls.Config) pool {
	open, end := context.WithCancel(open)
	dialer := &net.Dialer{Timeout: connecting}
	t := &http.Transport{
		Proxy: nil, // addresses that the configuration did not name are not contacted
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

// tied is a connection that ends with its pool, whatever state it is in.
type tied struct {
	net.Conn
	untie func() bool
}

func (c *tied) Close() error {
	c.untie()
	return c.Conn.Close()
}
