package program

import "net"

// Loopback returns an error if addr is not a loopback address.
func Loopback(addr string) error {
	loopback, err := onLoopback(addr)
	if err != nil || loopback {
		return err
	}
	return UsageError("%s is not a loopback address; listen on 127.0.0.1 or ::1, because only agents of this machine may connect here", addr)
}

// Secured returns an error if addr is beyond loopback and there is no certificate. It reports whether
// addr needs TLS.
func Secured(addr string, certified bool) (encrypted bool, err error) {
	loopback, err := onLoopback(addr)
	switch {
	case err != nil || loopback:
		return false, err
	case certified:
		return true, nil
	}
	return false, UsageError("%s is not a loopback address, so it needs TLS; "+
		"name a certificate with --tls-cert and its key with --tls-key, or listen on 127.0.0.1", addr)
}

func onLoopback(addr string) (bool, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false, UsageError("the address %q does not have the form HOST:PORT: %w", addr, err)
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback(), nil
}
