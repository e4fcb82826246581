package bus

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// unreached says why there is no connection, and what to do about it.
func (o *Options) unreached(err error) error {
	advice := o.advice(err)
	if advice == "" {
		advice = "start a broker there or name another server"
	}
	return fmt.Errorf("can not connect to NATS at %s: %w; %s", o.where(), err, advice)
}

// advice is what to do about an error that has to do with certificates; empty: it
// has not.
func (o *Options) advice(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the server's certificate is of an authority that is not trusted here; name that authority's certificate with --tls-ca, or HOOKFABRIC_TLS_CA"
	}
	if wrong, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("the server's certificate is for %s; name the server so, or give it a certificate for %s", hosts(wrong.Certificate), wrong.Host)
	}
	if wrong, ok := errors.AsType[x509.CertificateInvalidError](err); ok && wrong.Reason == x509.Expired {
		return fmt.Sprintf("the server's certificate is good from %s to %s; renew it, or set the clock of this machine",
			wrong.Cert.NotBefore.Format(time.RFC3339), wrong.Cert.NotAfter.Format(time.RFC3339))
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the server's certificate can not be trusted; give the server one that is good for servers, of the authority that --tls-ca names"
	}
	switch text := err.Error(); {
	case errors.Is(err, nats.ErrSecureConnWanted):
		return "the server speaks no TLS; start it with --tls-cert and --tls-key, or write nats:// and leave --tls-ca and --tls-cert away"
	case refusesClient(text) && !o.TLS.Shows():
		return "the server wants to see a certificate; name one with --tls-cert and --tls-key"
	case refusesClient(text):
		return fmt.Sprintf("the server does not trust the certificate %s; name one of the authority that it trusts", o.TLS.Cert)
	case strings.Contains(text, "tls: expired certificate"):
		return fmt.Sprintf("the certificate %s has expired; renew it", o.TLS.Cert)
	}
	return ""
}

// refusesClient reports whether an error is that of a server that did not like the
// client's certificate, or that there is none. It may hang up before it has said so.
func refusesClient(text string) bool {
	for _, part := range []string{"tls: certificate required", "tls: bad certificate", "tls: unknown certificate authority", "closed by remote after TLS handshake"} {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// hosts are the names that a certificate is for.
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

// secured are the options by which a client knows the server, and shows who it is.
// The files are read at every attempt, so that renewed ones are used.
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
