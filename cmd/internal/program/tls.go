package program

import (
	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/bus/server/certs"
)

// TLSFlags declares the TLS flags of a NATS client.
func TLSFlags(f *pflag.FlagSet, files *certs.Files) {
	f.StringVar(&files.CA, "tls-ca", "", "PEM file of CA certificates that verify the NATS servers (default: the system's CA certificates)")
	f.StringVar(&files.Cert, "tls-cert", "", "PEM file of the client certificate for the NATS servers (default: none)")
	f.StringVar(&files.Key, "tls-key", "", "PEM file of the private key of --tls-cert")
}

// ExplicitTLS reports whether the command line has one of them.
func ExplicitTLS(f *pflag.FlagSet) bool {
	return Explicit(f, "tls-ca") || Explicit(f, "tls-cert") || Explicit(f, "tls-key")
}

// HTTPAuthoritiesFlag declares the flag with the CA bundle of an HTTP server.
func HTTPAuthoritiesFlag(f *pflag.FlagSet, file *string) {
	f.StringVar(file, "http-tls-ca", "", "PEM file of CA certificates that verify HTTP clients on non-loopback addresses; empty: clients need no certificate")
}
