package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/certs"
)

// A Leaf configures leaf nodes: which servers may join this one, or which hub it joins. A server that joins
// a hub stores nothing. Its storage is that of the hub, and so are services that it does not have.
type Leaf struct {
	// Listen is the address for leaf nodes of other sites; empty: none may join. Beyond loopback it
	// needs credentials and TLS.
	Listen string
	// Remotes are the addresses of the hub's servers, of which it connects to one; empty: it is no
	// leaf.
	Remotes []string
	// Creds is a file with the credentials for the hub; empty: the hub requires none.
	Creds string
	// CA holds the authorities of the hub's certificate, and makes TLS mandatory; empty: the
	// system's authorities.
	CA string
}

// globalAccount is the account of clients without credentials.
const globalAccount = "$G"

// suchLeaf is an example of an address for leaf nodes.
const suchLeaf = "127.0.0.1:7422"

// branch configures the server for leaf nodes, or as one.
func (o *Options) branch(opts *server.Options) (err error) {
	l := o.Leaf
	if l == nil || l.Listen == "" && len(l.Remotes) == 0 {
		return nil
	}
	// Requests to JetStream pass from leaf nodes to the hub, as all others do.
	opts.JsAccDefaultDomain = map[string]string{globalAccount: ""}
	if l.Listen != "" {
		if err := o.takeLeaves(&opts.LeafNode); err != nil {
			return err
		}
	}
	if len(l.Remotes) == 0 {
		return nil
	}
	if o.Cluster != nil {
		return fmt.Errorf("a server of the cluster %s cannot be a leaf node; remove --leaf-remotes or --cluster-name", o.Cluster.Name)
	}
	hub := &server.RemoteLeafOpts{Credentials: l.Creds}
	for _, r := range l.Remotes {
		u, err := l.remote(r)
		if err != nil {
			return err
		}
		hub.TLS = hub.TLS || u.Scheme == "tls"
		hub.URLs = append(hub.URLs, u)
	}
	if l.CA != "" {
		if hub.TLSConfig, err = (certs.Files{CA: l.CA, Cert: o.TLS.Cert, Key: o.TLS.Key}).Client(); err != nil {
			return err
		}
		hub.TLS, hub.TLSTimeout = true, tlsTimeout.Seconds()
	}
	opts.LeafNode.Remotes = []*server.RemoteLeafOpts{hub}
	opts.JetStream = false // that of the hub is used
	return nil
}

// takeLeaves makes the server accept leaf nodes.
func (o *Options) takeLeaves(opts *server.LeafNodeOpts) (err error) {
	if opts.Host, opts.Port, err = splitAddress(o.Leaf.Listen, suchLeaf); err != nil {
		return err
	}
	if !loopback(opts.Host) && (!o.TLS.Shows() || !o.authenticates()) {
		return o.unsafe(o.Leaf.Listen, suchLeaf)
	}
	if !o.TLS.Shows() {
		return nil
	}
	if opts.TLSConfig, err = o.TLS.Server(newLogger(o.Logger).log); err != nil {
		return err
	}
	opts.TLSTimeout = tlsTimeout.Seconds()
	return nil
}

// remote parses the address of a hub.
func (l *Leaf) remote(text string) (*url.URL, error) {
	scheme, host, ok := strings.Cut(strings.TrimSpace(text), "://")
	if !ok {
		scheme, host = "nats-leaf", scheme
	}
	if scheme != "nats-leaf" && scheme != "nats" && scheme != "tls" {
		return nil, fmt.Errorf("the hub %s begins with %s://; use nats-leaf://HOST:PORT or tls://HOST:PORT", bus.RedactURL(text), scheme)
	}
	if host = strings.TrimSuffix(host, "/"); strings.Contains(host, "@") {
		return nil, fmt.Errorf("the hub %s contains a password, which other users can see; name a credentials file with --creds", bus.RedactURL(text))
	}
	if _, _, err := splitAddress(host, suchLeaf); err != nil {
		return nil, fmt.Errorf("the hub %w", err)
	}
	return &url.URL{Scheme: scheme, Host: host}, nil
}

// leafName returns a random name for a server that stores nothing.
func leafName() string { return "leaf-" + strings.ToLower(rand.Text()[:12]) }

// IsLeaf reports whether the server is a leaf node of a hub.
func (s *Server) IsLeaf() bool { return s.leaf != nil && len(s.leaf.Remotes) > 0 }

// joined reports whether the hub is connected.
func (s *Server) joined() bool { return s.nats.NumLeafNodes() > 0 }

// noHub returns what a leaf waits for.
func (s *Server) noHub(ctx context.Context) string {
	var there []string
	for _, r := range s.leaf.Remotes {
		if u, err := s.leaf.remote(r); err == nil && answers(ctx, u.Host) {
			there = append(there, u.Host)
		}
	}
	what := "waiting for the hub at " + bus.RedactURL(strings.Join(s.leaf.Remotes, ", "))
	if len(there) == 0 {
		return what + ": no server answers; start a broker with --leaf-listen there, or correct --leaf-remotes"
	}
	return fmt.Sprintf("%s: the server at %s refuses this one; check --creds, --cluster-tls-ca, and that the port is the hub's --leaf-listen", what, strings.Join(there, ", "))
}
