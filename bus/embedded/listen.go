package embedded

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

// listenAddress splits a loopback address. An empty one is nowhere.
func listenAddress(s string) (host string, port int, err error) {
	if s == "" {
		return "", 0, nil
	}
	host, p, err := net.SplitHostPort(s)
	if err != nil {
		return "", 0, fmt.Errorf("%q is no address to listen on; write one such as 127.0.0.1:4222", s)
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("%q has the port %q; write a number from 0 to 65535, such as 127.0.0.1:4222", s, p)
	}
	if !loopback(host) {
		return "", 0, fmt.Errorf("listening on %q would let other machines in, which needs authentication and TLS; "+
			"this version can do neither, so write a loopback address such as 127.0.0.1:%s, "+
			"or use a NATS deployment that is set up for it", s, p)
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

// checkFree finds out whether addr can be listened on, because the server's
// own report of it is no error but a line in its log.
func checkFree(ctx context.Context, addr string) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case err == nil:
		return l.Close()
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is in use, perhaps by another broker; stop that one or listen on another port: %w", addr, err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s needs rights that this process does not have; listen on a port above 1023: %w", addr, err)
	}
	return fmt.Errorf("can not listen on %s: %w", addr, err)
}
