package bus

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// unreached returns the error for a connection that could not be made, with advice.
func (o *Options) unreached(err error) error {
	if advice := o.advice(err); advice != "" {
		return refusal{fmt.Errorf("cannot connect to NATS at %s: %w; %s", o.where(), err, advice)}
	}
	return fmt.Errorf("cannot connect to NATS at %s: %w; start a broker there, or name another server", o.where(), err)
}

// refusal returns the error for a connection that fails because of credentials or certificates;
// nil: err has another cause.
func (o *Options) refusal(err error) error {
	if rejected := o.rejected(err, o.where()); rejected != nil {
		return rejected
	}
	if refused := o.unreached(err); errors.Is(refused, ErrRefused) {
		return refused
	}
	return nil
}

// advice returns what to do about an error that certificates cause; empty: it has another cause.
func (o *Options) advice(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "this machine does not trust the authority that signed the server's certificate; name that authority's certificate with --tls-ca or HOOKFABRIC_TLS_CA"
	}
	if wrong, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("the server's certificate is for %s; use that name in the URL, or give the server a certificate for %s", hosts(wrong.Certificate), wrong.Host)
	}
	if wrong, ok := errors.AsType[x509.CertificateInvalidError](err); ok && wrong.Reason == x509.Expired {
		return fmt.Sprintf("the server's certificate is valid from %s to %s; renew it, or correct the clock of this machine",
			wrong.Cert.NotBefore.Format(time.RFC3339), wrong.Cert.NotAfter.Format(time.RFC3339))
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the server's certificate is not valid for a server; give the server a server certificate that the authority of --tls-ca signed"
	}
	switch text := err.Error(); {
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "the server does not use TLS; start it with --tls-cert and --tls-key, or use nats:// and remove --tls-ca and --tls-cert"
	case refusesClient(text) && !o.TLS.Shows():
		return "the server requires a client certificate; name one with --tls-cert and --tls-key"
	case refusesClient(text):
		return fmt.Sprintf("the server does not trust the certificate %s; name one that an authority of the server signed", o.TLS.Cert)
	case strings.Contains(text, "tls: expired certificate"):
		return fmt.Sprintf("the certificate %s has expired; renew it", o.TLS.Cert)
	}
	return ""
}

// refusesClient reports whether a server rejected the client's certificate, or requires one. The
// server may close the connection before it sends the reason.
func refusesClient(text string) bool {
	return slices.ContainsFunc([]string{"tls: certificate required", "tls: bad certificate", "tls: unknown certificate authority", "closed by remote after TLS handshake"}, func(part string) bool { return strings.Contains(text, part) })
}

// hosts returns the names in a certificate.
func hosts(c *x509.Certificate) string {
	all := c.DNSNames
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) == 0 {
		return "no host"
	}
	return strings.Join(all, ", ")
}

// secured returns the TLS options. The files are read at every attempt, so that renewed ones
// are used.
func (o *Options) secured() []nats.Option {
	if o.TLS.Empty() || o.InProcess != nil {
		return nil
	}
	var shown nats.TLSCertHandler
	var trusted nats.RootCAsHandler
	if o.TLS.Shows() {
		shown = o.TLS.Pair
	}
	if o.TLS.CA != "" {
		trusted = o.TLS.Roots
	}
	return []nats.Option{nats.ClientTLSConfig(shown, trusted)}
}
