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

// HTTPAuthoritiesFlag is the flag of a program that serves HTTP: of whose certificates those
// who ask must show one.
func HTTPAuthoritiesFlag(f *pflag.FlagSet, file *string) {
	f.StringVar(file, "http-tls-ca", "", "PEM file of authorities: who asks at --http, where other machines can reach it, must show a certificate of one of them; empty: nobody")
}
