// Package certs reads certificates from files, and reads them again when the files change.
// The next connection uses a renewed certificate; open connections stay. The package
// imports little beyond the standard library, so that any client can use it.
package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"

	"github.com/hookfabric/hookfabric/bus/chown"
)

// Files are paths of PEM files with certificates. The zero Files name none.
type Files struct {
	// CA holds the authorities that a client trusts for servers, or a server for clients, which
	// then need a certificate. Empty: a client trusts the system's, and a server requires none.
	CA string
	// Cert and Key are the own certificate, with the chain to its authority, and its key. Empty:
	// no certificate.
	Cert, Key string
}

// Empty reports whether no file is named.
func (f Files) Empty() bool { return f == Files{} }

// Shows reports whether there is an own certificate.
func (f Files) Shows() bool { return f.Cert != "" || f.Key != "" }

// Check reads all files and returns what is wrong with them.
func (f Files) Check() error {
	var errs []error
	if f.Shows() {
		_, err := f.Pair()
		errs = append(errs, err)
	}
	if f.CA != "" {
		_, err := f.Roots()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Pair reads the certificate and its key.
func (f Files) Pair() (tls.Certificate, error) {
	switch {
	case f.Cert == "":
		return tls.Certificate{}, fmt.Errorf("the key %s has no certificate; name the certificate with --tls-cert", f.Key)
	case f.Key == "":
		return tls.Certificate{}, fmt.Errorf("the certificate %s has no key; name the key with --tls-key", f.Cert)
	}
	if err := chown.Private(f.Key); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return tls.Certificate{}, err
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return pair, fmt.Errorf("cannot use the certificate %s with the key %s: %w; name a PEM certificate and its private key", f.Cert, f.Key, err)
	}
	return pair, nil
}

// Roots reads the certificates of the authorities.
func (f Files) Roots() (*x509.CertPool, error) {
	data, err := os.ReadFile(f.CA)
	if err != nil {
		return nil, fmt.Errorf("cannot read the certificates of the authorities: %w; name a PEM file", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s has no certificate of an authority; name a PEM file that has one", f.CA)
	}
	return pool, nil
}

// Client returns the configuration of a client.
func (f Files) Client() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if f.CA != "" {
		if conf.RootCAs, err = f.Roots(); err != nil {
			return nil, err
		}
	}
	if f.Shows() {
		if _, err := f.Pair(); err != nil {
			return nil, err
		}
		conf.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := f.Pair()
			return &pair, err
		}
	}
	return conf, nil
}

// Server returns the configuration of a server, which follows changes of the files. Changed files that
// are faulty are ignored and logged; a nil log is no log.
func (f Files) Server(log *slog.Logger) (*tls.Config, error) {
	shown, err := follow([]string{f.Cert, f.Key}, f.Pair, log)
	if err != nil {
		return nil, err
	}
	base := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { pair := shown.get(); return &pair, nil },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair := shown.get()
			return &pair, nil
		},
	}
	if f.CA == "" {
		return base, nil
	}
	trusted, err := follow([]string{f.CA}, f.Roots, log)
	if err != nil {
		return nil, err
	}
	base.ClientAuth, base.ClientCAs, base.RootCAs = tls.RequireAndVerifyClientCert, trusted.get(), trusted.get()
	base.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := base.Clone()
		now.ClientCAs, now.GetConfigForClient = trusted.get(), nil
		return now, nil
	}
	return base, nil
}
