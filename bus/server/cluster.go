package server

import (
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

// A Cluster says with which other servers one is one.
type Cluster struct {
	// Name is the cluster's, the same on all of its servers.
	Name string
	// Server is this one's name, unique in the cluster; empty: the one that the data
	// directory has, or a new one.
	Server string
	// Listen is the address for the other servers. One that other machines can reach
	// takes TLS, and certificates of the authorities in CA.
	Listen string
	// Routes are the addresses at which the others listen, as HOST:PORT or URLs; this
	// server's own may be among them.
	Routes []string
	// Secret lets the others in who have it, too; empty: everybody who can connect.
	Secret string
	// CA holds the authorities of the other servers' certificates; empty: those of
	// [Options.TLS].
	CA string
}

const (
	// suchRoute shows how addresses of servers are written.
	suchRoute = "127.0.0.1:6222"
	// routeUser is the name that servers give each other with the secret.
	routeUser = "route"
	// minSecret is how long a secret must be.
	minSecret = 16
	// ldmGrace is how long clients may take to go elsewhere when the server stops,
	// and ldmTime when the last of them is dropped.
	ldmGrace = 3 * time.Second
	ldmTime  = 5 * time.Second
	// Servers leave the connection to one that does not answer this often in a row, after
	// 3 to 4 s. Until then they hand it requests that others could answer; and when it can be
	// reached again, what had been sent on an old connection comes only when it is sent again,
	// for which systems wait about as long as nothing came through.
	routePing  = time.Second
	routePings = 3
)

// join makes the server one of a cluster.
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
		// Servers keep no plain passwords, and long ones not at all.
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

// routeAddress splits the address for the other servers.
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
		// Another server speaks for everybody. Certificates are shown by agents and workers, too.
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

func (o *Options) routeCA() string {
	if o.Cluster.CA != "" {
		return o.Cluster.CA
	}
	return o.TLS.CA
}

// secureRoutes has servers show each other certificates, if there are any.
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

// routes are the hosts and ports of all servers that are named.
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

// others are the routes but this server's own, as far as that can be told.
func (c *Cluster) others() []string {
	all, _ := c.routes() // looked at before
	return slices.DeleteFunc(all, c.own)
}

// Size is how many servers the cluster has, by what is named of it.
func (c *Cluster) Size() int {
	return len(c.others()) + 1
}

// How it is waited for a cluster.
const (
	lookForLeader = 50 * time.Millisecond
	sayEvery      = 3 * time.Second
	dialRoute     = 500 * time.Millisecond
)

// Await returns when the server's cluster has a leader that this server follows, so
// that things can be stored, and at least so many servers are there. Every few
// seconds it says whom it waits for. A leaf waits for its hub; a server on its own has
// nothing to wait for.
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

// expected are whether those are there without whom the server can do nothing, and who
// is missing; nil: it needs nobody.
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

// led reports whether the servers agree on a leader, and this one is up to date.
func (s *Server) led() bool {
	info, err := s.nats.Jsz(nil)
	return err == nil && info.Meta != nil && info.Meta.Leader != "" && s.nats.JetStreamIsCurrent()
}

// missing says whom a server waits for.
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

// Name is the server's name; that of one in a cluster is unique there.
func (s *Server) Name() string { return s.nats.Name() }

// Members is how many servers there are, by what is named of the cluster.
func (s *Server) Members() int {
	if s.cluster == nil {
		return 1
	}
	return s.cluster.Size()
}

// Clustered reports whether the server is one of several.
func (s *Server) Clustered() bool { return s.cluster != nil }

// Stores reports whether the server's own part of JetStream runs, whatever the
// others do.
func (s *Server) Stores() bool { return s.nats.JetStreamEnabled() }

// errAlone says that a server keeps to itself, or not, for good.
var errAlone = errors.New("a single server and a cluster cannot take over each other's data")
