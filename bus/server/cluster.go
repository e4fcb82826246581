package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/certs"
)

// A Cluster configures a server of a cluster.
type Cluster struct {
	// Name is the name of the cluster, the same on all of its servers.
	Name string
	// Server is the name of this server, unique in the cluster; empty: the one of the data
	// directory, or a new one.
	Server string
	// Listen is the address for the other servers. Beyond loopback it needs TLS and certificates
	// of the authorities in CA.
	Listen string
	// Routes are the addresses of the servers, as HOST:PORT or URLs; this server's own may be
	// among them.
	Routes []string
	// Secret is required from the other servers; empty: any server can join.
	Secret string
	// CA holds the authorities of the other servers' certificates; empty: those of
	// [Options.TLS].
	CA string
}

const (
	// suchRoute is an example of a server's address.
	suchRoute = "127.0.0.1:6222"
	// routeUser is the user name of servers with the secret.
	routeUser = "route"
	// minSecret is the least length of a secret.
	minSecret = 16
	// ldmGrace is how long clients may take to move when the server stops, and ldmTime the time
	// until the last connection is closed.
	ldmGrace = 3 * time.Second
	ldmTime  = 5 * time.Second
	// A server closes the connection to another one after so many pings without an answer, after
	// 3 to 4 s. Until then it routes requests there that others could answer. After a network cut
	// data on an old connection arrives only when TCP retransmits it, which may take as long as
	// the cut.
	routePing  = time.Second
	routePings = 3
)

// join configures the server as part of a cluster.
func (o *Options) join(opts *server.Options) error {
	c := o.Cluster
	if c == nil {
		return nil
	}
	host, port, err := o.routeAddress()
	if err != nil {
		return err
	}
	opts.Cluster = server.ClusterOpts{Name: c.Name, Host: host, Port: port, PingInterval: routePing, MaxPingsOut: routePings}
	opts.LameDuckGracePeriod, opts.LameDuckDuration = ldmGrace, ldmTime
	if err := o.secureRoutes(&opts.Cluster); err != nil {
		return err
	}
	var user *url.Userinfo
	if c.Secret != "" {
		if len(c.Secret) < minSecret {
			return fmt.Errorf("the secret of the cluster %s has %d characters; use at least %d", c.Name, len(c.Secret), minSecret)
		}
		// Servers do not accept plain passwords, nor long ones.
		sum := sha256.Sum256([]byte(c.Secret))
		password := hex.EncodeToString(sum[:])
		if opts.Cluster.Password, err = hash(password); err != nil {
			return err
		}
		opts.Cluster.Username, user = routeUser, url.UserPassword(routeUser, password)
	}
	routes, err := c.routes()
	if err != nil {
		return err
	}
	for _, r := range routes {
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats-route", User: user, Host: r})
	}
	return nil
}

// routeAddress parses the address for the other servers.
func (o *Options) routeAddress() (host string, port int, err error) {
	c := o.Cluster
	switch {
	case strings.Trim(c.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || c.Name == "" || len(c.Name) > 64:
		return "", 0, fmt.Errorf("the cluster's name is %q; use letters, digits, - and _, at most 64", c.Name)
	case c.Listen == "":
		return "", 0, fmt.Errorf("the other servers of the cluster %s cannot reach this one; name an address with --cluster-listen, such as %s", c.Name, suchRoute)
	case len(c.Routes) == 0:
		return "", 0, fmt.Errorf("no other server of the cluster %s is named; name their addresses with --routes, such as %s,…", c.Name, suchRoute)
	case o.Listen == "":
		return "", 0, fmt.Errorf("a server of the cluster %s needs an address for clients; name it with --listen", c.Name)
	}
	if host, port, err = splitAddress(c.Listen, suchRoute); err != nil {
		return host, port, err
	}
	if c.Secret == "" && (o.authenticates() || !loopback(host)) {
		// A server can send messages in the name of any client. Certificates alone are not enough,
		// because agents and workers have some, too.
		return "", 0, fmt.Errorf("any machine that reaches %q could join the cluster %s as a server; write a secret into a file that only its servers can read, "+
			"such as the output of 'openssl rand -hex 32', and name it with --cluster-secret", c.Listen, c.Name)
	}
	if loopback(host) {
		return host, port, nil
	}
	if !o.TLS.Shows() || o.routeCA() == "" {
		return "", 0, fmt.Errorf("%q is not a loopback address, so servers need TLS there: name this server's certificate with --tls-cert and --tls-key, "+
			"and the authority of the others' with --cluster-tls-ca or --tls-ca; or use a loopback address such as %s", c.Listen, suchRoute)
	}
	return host, port, nil
}

func (o *Options) routeCA() string { return cmp.Or(o.Cluster.CA, o.TLS.CA) }

// secureRoutes configures TLS between servers, if there are certificates.
func (o *Options) secureRoutes(opts *server.ClusterOpts) error {
	files := certs.Files{CA: o.routeCA(), Cert: o.TLS.Cert, Key: o.TLS.Key}
	if !files.Shows() || files.CA == "" {
		return nil
	}
	conf, err := files.Server(newLogger(o.Logger).log)
	if err != nil {
		return err
	}
	opts.TLSConfig, opts.TLSTimeout = conf, tlsTimeout.Seconds()
	return nil
}

// routes returns the addresses of all servers as HOST:PORT.
func (c *Cluster) routes() ([]string, error) {
	var all []string
	for _, r := range c.Routes {
		host := strings.TrimSpace(r)
		if scheme, rest, ok := strings.Cut(host, "://"); ok {
			if host = strings.TrimSuffix(rest, "/"); scheme != "nats-route" && scheme != "nats" && scheme != "tls" {
				return nil, fmt.Errorf("the route %s begins with %s://; use nats-route://HOST:PORT", bus.RedactURL(r), scheme)
			}
		}
		if strings.Contains(host, "@") {
			return nil, fmt.Errorf("the route %s contains a password, which other users can see; put it into a file, and name the file with --cluster-secret", bus.RedactURL(r))
		}
		if _, _, err := splitAddress(host, suchRoute); err != nil {
			return nil, fmt.Errorf("the route %w", err)
		}
		if !slices.Contains(all, host) {
			all = append(all, host)
		}
	}
	return all, nil
}

// others returns the routes without this server's own, as far as it can be recognised.
func (c *Cluster) others() []string {
	all, _ := c.routes() // checked before
	return slices.DeleteFunc(all, c.own)
}

// Size returns the number of servers of the cluster, by its routes.
func (c *Cluster) Size() int {
	return len(c.others()) + 1
}

// The times of waiting for a cluster.
const (
	lookForLeader = 50 * time.Millisecond
	sayEvery      = 3 * time.Second
	dialRoute     = 500 * time.Millisecond
)

// Await returns when the cluster has a leader, so that data can be stored, and at least so many servers
// are connected. It calls say at intervals with what is missing. A leaf waits for its hub. A single
// server does not wait.
func (s *Server) Await(ctx context.Context, least int, say func(waiting string)) error {
	there, missing := s.expected(least)
	if there == nil {
		return nil
	}
	look := time.NewTicker(lookForLeader)
	defer look.Stop()
	said := time.Now()
	for !there() {
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", missing(context.WithoutCancel(ctx)), context.Cause(ctx))
		}
		if time.Since(said) > sayEvery {
			say(missing(ctx))
			said = time.Now()
		}
	}
	return nil
}

// expected returns a function that reports whether all that the server needs is connected, and one that
// returns what is missing; nil: it needs nothing.
func (s *Server) expected(least int) (there func() bool, missing func(context.Context) string) {
	switch {
	case s.IsLeaf():
		return s.joined, s.noHub
	case s.cluster == nil:
		return nil, nil
	}
	return func() bool { return s.led() && len(s.nats.ActivePeers()) >= least },
		func(ctx context.Context) string { return s.missing(ctx, least) }
}

// led reports whether the servers have a leader, and this one is current.
func (s *Server) led() bool {
	info, err := s.nats.Jsz(nil)
	return err == nil && info.Meta != nil && info.Meta.Leader != "" && s.nats.JetStreamIsCurrent()
}

// missing returns what the server waits for.
func (s *Server) missing(ctx context.Context, least int) string {
	others := s.cluster.others()
	var absent []string
	for _, r := range others {
		if !answers(ctx, r) {
			absent = append(absent, r)
		}
	}
	what := fmt.Sprintf("waiting for at least %d of the %d servers of the cluster %s", max(least, s.cluster.Size()/2+1), s.cluster.Size(), s.cluster.Name)
	switch {
	case len(absent) > 0:
		return fmt.Sprintf("%s: no server answers at %s; start the brokers there, or correct --routes", what, strings.Join(absent, ", "))
	case s.nats.NumRoutes() == 0:
		return fmt.Sprintf("%s: the server at %s refuses this one; check that --cluster-name, --cluster-secret and the certificates match there", what, strings.Join(others, ", "))
	}
	return what + ": they are connected, and have not elected a leader yet"
}

func answers(ctx context.Context, address string) bool {
	d := net.Dialer{Timeout: dialRoute}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// Name returns the server's name, which is unique in a cluster.
func (s *Server) Name() string { return s.nats.Name() }

// Members returns the number of servers, by the routes of the cluster.
func (s *Server) Members() int {
	if s.cluster == nil {
		return 1
	}
	return s.cluster.Size()
}

// Clustered reports whether the server is part of a cluster.
func (s *Server) Clustered() bool { return s.cluster != nil }

// Stores reports whether this server's own JetStream runs.
func (s *Server) Stores() bool { return s.nats.JetStreamEnabled() }

// errAlone means that data cannot move between a single server and a cluster.
var errAlone = errors.New("a single server and a cluster cannot take over each other's data")
