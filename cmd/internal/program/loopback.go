package program

import "net"

// Loopback refuses an address that other machines can reach: that takes
// authentication and TLS.
func Loopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return UsageError("the address %q is not HOST:PORT: %w", addr, err)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return UsageError("%s can be reached from other machines, which takes authentication and TLS; "+
		"listen on 127.0.0.1 and use --nats with a NATS deployment that has both", addr)
}
