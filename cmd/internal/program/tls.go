package program

import (
	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/bus/certs"
)

// TLSFlags are the flags of a program that connects: whom it trusts, and what it
// shows.
func TLSFlags(f *pflag.FlagSet, files *certs.Files) {
	f.StringVar(&files.CA, "tls-ca", "", "PEM file of the authorities whose servers are trusted; empty: those that the system trusts")
	f.StringVar(&files.Cert, "tls-cert", "", "PEM file of the certificate to show")
	f.StringVar(&files.Key, "tls-key", "", "PEM file of its key")
}

// ExplicitTLS reports whether the command line itself gives one of them.
func ExplicitTLS(f *pflag.FlagSet) bool {
	return Explicit(f, "tls-ca") || Explicit(f, "tls-cert") || Explicit(f, "tls-key")
}
