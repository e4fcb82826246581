package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/internal/natsconn"
	"github.com/hookfabric/hookfabric/bus/server/certs"
)

const (
	// pingEvery is how often the client pings its server, which it leaves after two pings
	// without an answer.
	pingEvery   = 10 * time.Second
	dialTimeout = 2 * time.Second
)

// DialLimit bounds one attempt to connect, after shorter attempts ran out of time.
const DialLimit = natsconn.DialLimit

// A Message is a message to publish; see [natsconn.Message].
type Message = natsconn.Message

// A Publisher publishes messages; see [natsconn.Publisher].
type Publisher = natsconn.Publisher

// NewPublisher returns the Publisher of nc.
func NewPublisher(nc *nats.Conn) *Publisher { return natsconn.NewPublisher(nc) }

// DefaultURL is the address of the broker on this machine.
const DefaultURL = nats.DefaultURL

// Options say where and how to connect.
type Options struct {
	// URL is the server, or several separated by commas; empty is [DefaultURL].
	// It is ignored if InProcess is set.
	URL string
	// Name identifies the connection to operators and peers; empty is "hookfabric".
	Name string
	// Plain uses the client of nats.go without natsconn's writer and time limits.
	Plain bool
	// Creds is the path of a credentials file; empty: no credentials.
	Creds string
	// User and Password identify the client; an empty User sends neither.
	User, Password string
	// JWT and Seed are a user's credentials without a file; an empty JWT sends neither.
	JWT, Seed string
	// Role is the role of the credentials that error messages suggest; empty is "operator".
	Role string
	// OnDenied is called each time that the bus denies an operation; nil: no call. It must
	// not block.
	OnDenied func(error)
	// OnRefused is called each time that reconnecting fails because of credentials or
	// certificates; nil: no call. It must not block.
	OnRefused func(error)
	// TLS names the authority that the client trusts and its own certificate. If it is empty, a
	// tls:// server must have a certificate that the system trusts.
	TLS certs.Files
	// From is the local address of the connection, IPv4 for servers with an IPv4 address;
	// the zero Addr: the system chooses. InProcess ignores it.
	From netip.Addr
	// InProcess is a server in this process; nil connects over the network.
	InProcess nats.InProcessConnProvider
	// Within bounds the first attempts to connect; 0: 2 s.
	Within time.Duration
	// Retry makes Connect return while no server answers; the connection keeps trying.
	// Without it that is an error.
	Retry bool
	// NoEcho keeps this connection's own messages from its own subscriptions.
	NoEcho bool
	// Logger logs lost connections, denied operations and slow subscriptions; nil: no log.
	Logger *slog.Logger
	// OnState is called when the connection is made or lost, never twice at the same time;
	// nil: no call. It must not block.
	OnState func(connected bool)
	// OnLeaving is called when the server announces its stop, so that a client without work
	// in progress can move to another one; nil: no call. It must not block.
	OnLeaving func(*nats.Conn)
}

// Connect connects to NATS. A lost connection reconnects until it is closed. While it is
// lost, publishing fails at once: a buffered request or answer would arrive after its
// deadline. The first attempt ends with ctx at the latest.
func Connect(ctx context.Context, o Options) (*nats.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("connecting to NATS: %w", context.Cause(ctx))
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	who, err := o.identify()
	if err != nil {
		return nil, err
	}
	c := o.connector(ctx)
	nc, err := connectWithin(ctx, o.url(), slices.Concat(o.natsOptions(), c.Options(), who))
	if err != nil {
		if refused := o.refusal(err); refused != nil {
			return nil, refused
		}
		return nil, o.unreached(err)
	}
	c.Watch(nc)
	return nc, nil
}

// connectWithin connects, and returns when ctx ends. The client's own timeout does not bound
// the lookup of names, and it applies to each of several servers.
func connectWithin(ctx context.Context, url string, options []nats.Option) (*nats.Conn, error) {
	type made struct {
		nc  *nats.Conn
		err error
	}
	done := make(chan made)
	go func() {
		nc, err := nats.Connect(url, options...)
		select {
		case done <- made{nc, err}:
		case <-ctx.Done():
			if err == nil {
				nc.Close() // Connect has returned
			}
		}
	}()
	select {
	case m := <-done:
		return m.nc, m.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (o *Options) url() string { return cmp.Or(o.URL, DefaultURL) }

// where returns the server's address for messages.
func (o *Options) where() string {
	if o.InProcess != nil {
		return "this process"
	}
	return RedactURL(o.url())
}

// check rejects a URL that cannot be parsed, because the client's own error would contain
// its password.
func (o *Options) check() error {
	for s := range strings.SplitSeq(o.url(), ",") {
		s = strings.TrimSpace(s)
		if !strings.Contains(s, "://") {
			s = "nats://" + s
		}
		if u, err := url.Parse(s); err != nil || u.Hostname() == "" {
			return fmt.Errorf("%q is not the URL of a NATS server; use one such as %s", RedactURL(s), DefaultURL)
		}
	}
	if o.InProcess != nil {
		return nil
	}
	if err := o.TLS.Check(); err != nil {
		return refusal{err}
	}
	return nil
}

// RedactURL returns s, one URL or several separated by commas, without the
// names and passwords in it.
func RedactURL(s string) string {
	parts := strings.Split(s, ",")
	for i, p := range parts {
		at := strings.LastIndexByte(p, '@')
		if at < 0 {
			continue
		}
		start := 0
		if j := strings.Index(p, "://"); j >= 0 && j < at {
			start = j + len("://")
		}
		parts[i] = p[:start] + "***" + p[at:]
	}
	return strings.Join(parts, ",")
}

// connector returns what makes the network connections. The first attempts end with ctx.
func (o *Options) connector(ctx context.Context) *natsconn.Connector {
	timeout := cmp.Or(o.Within, dialTimeout)
	if end, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(end)), time.Millisecond)
	}
	return natsconn.New(natsconn.Config{
		Timeout: timeout, From: o.From, InProcess: o.InProcess, Plain: o.Plain,
	})
}

func (o *Options) natsOptions() []nats.Option {
	name := cmp.Or(o.Name, "hookfabric")
	opts := []nats.Option{
		nats.Name(name), nats.RetryOnFailedConnect(o.Retry), nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1), nats.ReconnectOnFlusherError(), nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2),
	}
	if o.NoEcho {
		opts = append(opts, nats.NoEcho())
	}
	return slices.Concat(opts, o.secured(), o.watch(name))
}

// Drain stops new messages, lets handlers finish, sends their answers and closes the
// connection. If ctx ends first, Drain closes the connection and returns an error. A
// connection without a server is closed at once.
func Drain(ctx context.Context, nc *nats.Conn) error {
	closed := nc.StatusChanged(nats.CLOSED)
	defer nc.RemoveStatusListener(closed)
	err := nc.Drain()
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrConnectionReconnecting) || nc.IsClosed() {
		return nil
	}
	if err != nil {
		nc.Close()
		return fmt.Errorf("draining the NATS connection: %w", err)
	}
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		nc.Close()
		return fmt.Errorf("the NATS connection was closed before it was drained: %w", context.Cause(ctx))
	}
}
