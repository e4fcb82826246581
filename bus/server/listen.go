package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"

	"github.com/nats-io/nats-server/v2/server"
)

// clientAddress parses the address for clients. Beyond loopback it needs credentials and TLS. Empty means no
// listener.
func (o *Options) clientAddress() (host string, port int, err error) {
	if o.Listen == "" {
		return "", 0, nil
	}
	if host, port, err = splitAddress(o.Listen, "127.0.0.1:4222"); err != nil || loopback(host) || o.TLS.Shows() && o.authenticates() {
		return host, port, err
	}
	return "", 0, o.unsafe(o.Listen, "127.0.0.1:4222")
}

// unsafe returns the error for an address beyond loopback without credentials or TLS.
func (o *Options) unsafe(address, such string) error {
	return fmt.Errorf("%q is not a loopback address, so it needs credentials and TLS: "+
		"require credentials with `broker creds init --data %s`, and name the server's certificate with --tls-cert and --tls-key; "+
		"or use a loopback address such as %s", address, o.Dir, such)
}

// addresses returns all addresses of the server's listeners.
func (o *Options) addresses() (all []string) {
	if o.Listen != "" {
		all = append(all, o.Listen)
	}
	if o.Cluster != nil && o.Cluster.Listen != "" {
		all = append(all, o.Cluster.Listen)
	}
	if o.Leaf != nil && o.Leaf.Listen != "" {
		all = append(all, o.Leaf.Listen)
	}
	return all
}

// splitAddress parses an address; such is an example for the error.
func splitAddress(s, such string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, fmt.Errorf("%q is not an address to listen on; use one such as %s", s, such)
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("%q has the port %q; use a number from 0 to 65535, such as %s", s, p, such)
	}
	if n == 0 {
		return host, server.RANDOM_PORT, nil
	}
	return host, int(n), nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// checkFree checks whether addr can be listened on, because the server only logs that it cannot.
func checkFree(ctx context.Context, addr string) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case err == nil:
		return l.Close()
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use, perhaps by another broker; stop that one, or listen on another port: %w", addr, err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s needs rights that this process does not have; listen on a port above 1023: %w", addr, err)
	}
	return fmt.Errorf("cannot listen on %s: %w", addr, err)
}
