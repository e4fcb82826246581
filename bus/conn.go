package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus/server/certs"
)

// How a connection keeps itself alive. A lost server is tried again for ever: first
// about every 200 to 400 ms, as a restart takes no longer, and then less and less
// often. Thousands of clients that come back at the same time need longer than one
// attempt may take at first, and would keep the server busy with attempts that were given
// up: who was not served in time has more of it at the next attempt.
// A server that stopped answering is given up after 20 to 30 s, and after 3 to 5 s where
// another one is known (pulse.go).
const (
	reconnectWait  = 200 * time.Millisecond
	reconnectSoon  = 5 // attempts
	reconnectLimit = 4 * time.Second
	pingEvery      = 10 * time.Second
	dialTimeout    = 2 * time.Second
)

// DialLimit is how long an attempt to connect may take at most, once shorter ones were
// in vain.
const DialLimit = 16 * time.Second

// reconnectDelay is how long to wait after so many attempts at all servers: at
// random, up to twice its least, so that clients do not come at the same instant.
func reconnectDelay(attempts int) time.Duration {
	least := reconnectWait
	for ; attempts > reconnectSoon && least < reconnectLimit/2; attempts-- {
		least = least * 3 / 2
	}
	least = min(least, reconnectLimit/2)
	return least + rand.N(least)
}

// DefaultURL is where the broker of this machine listens.
const DefaultURL = nats.DefaultURL

// Options say where and how to connect.
type Options struct {
	// URL is the server, or several separated by commas; empty is [DefaultURL].
	// It is not used when InProcess is set.
	URL string
	// Name is what operators and other peers see; empty is "hookfabric".
	Name string
	// Creds is the path of a credentials file; empty is none.
	Creds string
	// User and Password identify the client; an empty User is nobody.
	User, Password string
	// JWT and Seed are a user's credentials without a file; an empty JWT is none.
	JWT, Seed string
	// Role is what credentials to ask for where the bus asks who connects; empty is
	// "operator".
	Role string
	// OnDenied is told each time that the bus does not permit what was tried; nil is
	// nobody. It must not block.
	OnDenied func(error)
	// OnRefused is told each time that a connection that was lost is not made again, because
	// of its credentials or of certificates; nil is nobody. It must not block.
	OnRefused func(error)
	// TLS is whom the client trusts and what it shows; none: a server whose URL is
	// tls:// must have a certificate that the system trusts.
	TLS certs.Files
	// From is the address of this machine that the connection comes from, an IPv4 one for
	// servers that have such; the zero Addr: the system chooses. InProcess has none.
	From netip.Addr
	// InProcess is a server in this process; nil connects over the network.
	InProcess nats.InProcessConnProvider
	// Within is how long an attempt to connect may take at first; 0: 2 s.
	Within time.Duration
	// Retry makes Connect return although no server is there yet: the
	// connection goes on trying. False is an error then.
	Retry bool
	// NoEcho keeps this connection's own messages from its own subscriptions.
	NoEcho bool
	// Logger hears of lost connections, refused permissions and slow
	// subscriptions; nil is silence.
	Logger *slog.Logger
	// OnState is called, never twice at the same time, whenever the connection
	// is made or lost; nil is nobody. It must not block.
	OnState func(connected bool)
	// OnLeaving is called when the server says that it will stop soon, so that who
	// has nothing under way can go to another one; nil is nobody. It must not block.
	OnLeaving func(*nats.Conn)
}

// Connect connects to NATS. Whatever happens to the server later, the
// connection goes on trying until it is closed; in the meantime publishing
// fails at once instead of buffering, because a question or an answer that
// arrives after its deadline does harm. The first attempt ends with ctx at
// the latest.
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
	nc, err := attempt(ctx, o.url(), append(o.natsOptions(ctx), who...))
	if err != nil {
		if refused := o.refusal(err); refused != nil {
			return nil, refused
		}
		return nil, o.unreached(err)
	}
	if d, ok := nc.Opts.CustomDialer.(*gatheringDialer); ok && o.InProcess == nil {
		p := &pulse{nc: nc, last: &d.last}
		p.again()
	}
	return nc, nil
}

// attempt connects, and gives up with ctx: looking up a name takes as long as it
// takes, and each of several servers has a time of its own.
func attempt(ctx context.Context, url string, options []nats.Option) (*nats.Conn, error) {
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
				nc.Close() // nobody waits for it any more
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

func (o *Options) url() string {
	if o.URL == "" {
		return DefaultURL
	}
	return o.URL
}

// where names the server for people.
func (o *Options) where() string {
	if o.InProcess != nil {
		return "this process"
	}
	return RedactURL(o.url())
}

// check refuses a URL that cannot be read, because the client's own error
// would repeat it with its password.
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

func (o *Options) natsOptions(ctx context.Context) []nats.Option {
	timeout := cmp.Or(o.Within, dialTimeout)
	if end, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(end)), time.Millisecond)
	}
	name := o.Name
	if name == "" {
		name = "hookfabric"
	}
	dialer := &gatheringDialer{patience: patience{least: timeout}, from: o.From}
	opts := []nats.Option{
		nats.Name(name), nats.Timeout(timeout), nats.RetryOnFailedConnect(o.Retry),
		nats.MaxReconnects(-1), nats.CustomReconnectDelay(dialer.patience.pause),
		nats.ReconnectBufSize(-1), nats.ReconnectOnFlusherError(), nats.IgnoreAuthErrorAbort(),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2),
		nats.SetCustomDialer(dialer), nats.FlusherTimeout(0),
	}
	if o.NoEcho {
		opts = append(opts, nats.NoEcho())
	}
	if o.InProcess != nil {
		opts = append(opts, nats.InProcessServer(&gatheringServer{server: o.InProcess}))
	}
	return slices.Concat(opts, o.secured(), o.watch(name))
}

// Drain stops taking messages, lets handlers finish what is there, sends what
// they said and closes the connection. When ctx ends first, the connection is
// closed as it is and Drain says so. A connection without a server has nothing
// to drain: it is closed.
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
