package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus/chown"
	"github.com/hookfabric/hookfabric/schema"
)

// maxFile is the maximum size of a PEM file. A system's list of authorities has a quarter
// of it.
const maxFile = 1 << 20

// files are the folders of relative files, in order.
type files []string

// config returns the trusted authorities and the client certificate.
func (f files) config(t schema.TLS) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("tls has only one of cert and key; write both or neither")
	}
	if t.CA != "" {
		pool, err := f.authorities(t.CA)
		if err != nil {
			return nil, fmt.Errorf("tls: ca: %w", err)
		}
		c.RootCAs = pool
	}
	if t.Cert != "" {
		pair, err := f.pair(t)
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// authorities reads certificates. An unreadable one is an error, because otherwise its
// servers would only fail at a call.
func (f files) authorities(name string) (*x509.CertPool, error) {
	file, rest, err := f.read(name)
	if err != nil {
		return nil, err
	}
	pool, found := x509.NewCertPool(), false
	for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s has an invalid certificate (%w); replace it", file, err)
		}
		pool.AddCert(cert)
		found = true
	}
	if !found {
		return nil, fmt.Errorf("%s has no certificate; write the certificates of the trusted authorities into it", file)
	}
	return pool, nil
}

func (f files) pair(t schema.TLS) (pair tls.Certificate, err error) {
	certFile, cert, err := f.read(t.Cert)
	if err != nil {
		return pair, fmt.Errorf("cert: %w", err)
	}
	keyFile, key, err := f.read(t.Key)
	if err != nil {
		return pair, fmt.Errorf("key: %w", err)
	}
	if err := chown.Private(keyFile); err != nil {
		return pair, fmt.Errorf("key: %w", err)
	}
	if pair, err = tls.X509KeyPair(cert, key); err != nil {
		why := strings.TrimPrefix(err.Error(), "tls: ")
		return pair, fmt.Errorf("%s and %s are not a certificate and its key (%s); use two files that belong together", certFile, keyFile, why)
	}
	return pair, nil
}

// read returns the PEM text of the named file, and its path. In the folders, the first
// file of that name counts, as for programs.
func (f files) read(name string) (file string, text []byte, err error) {
	if file, err = f.find(name); err != nil {
		return "", nil, err
	}
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return "", nil, fmt.Errorf("%s is not a file; write the path of a PEM file", file)
	}
	opened, err := os.Open(file)
	if err != nil {
		return "", nil, fmt.Errorf("%w; put the file there, and give the worker permission to read it", err)
	}
	defer opened.Close()
	text, err = io.ReadAll(io.LimitReader(opened, maxFile+1))
	switch block, _ := pem.Decode(text); {
	case err != nil:
		return "", nil, fmt.Errorf("%w; give the worker permission to read it", err)
	case len(text) > maxFile:
		return "", nil, fmt.Errorf("%s has more than %d bytes; write the path of a PEM file", file, maxFile)
	case block == nil:
		return "", nil, fmt.Errorf("%s is not a PEM file; convert it, so that it begins with -----BEGIN", file)
	}
	return file, text, nil
}

func (f files) find(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	for _, dir := range f {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			return file, nil
		}
	}
	if len(f) == 0 {
		return "", fmt.Errorf("there is no file %q: there is no folder to look in; write its absolute path", name)
	}
	return "", fmt.Errorf("there is no file %q in %s; put it there, or write its absolute path", name, strings.Join(f, " or "))
}

const (
	// maxConns limits the connections of one hook: a worker's default number of calls.
	// Further calls wait for one.
	maxConns = 64
	// idle is how long a connection is kept for the next call. Common servers close
	// connections after 5 s. A request sent at that moment is lost, because it is unknown
	// whether the server read it.
	idle = 4 * time.Second
	// connecting limits each step of making a connection.
	connecting = 10 * time.Second
	// silence is how long an HTTP/2 connection with calls may be silent before it is
	// tested, and the limit of the test. All calls share it.
	silence = 5 * time.Second
	// maxHeaders limits the headers of a server.
	maxHeaders = 64 << 10
)

// A pool has the connections of one hook.
type pool struct {
	*http.Transport
	close context.CancelFunc
}

// newPool makes a pool whose connections are closed when open ends or the pool is closed.
func newPool(open context.Context, config *tls.Config) pool {
	open, end := context.WithCancel(open)
	dialer := &net.Dialer{Timeout: connecting}
	t := &http.Transport{
		Proxy: nil, // only addresses from the configuration are contacted
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &tied{Conn: conn, untie: context.AfterFunc(open, func() { _ = conn.Close() })}, nil
		},
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    connecting,
		DisableCompression:     true,
		MaxIdleConns:           maxConns,
		MaxIdleConnsPerHost:    maxConns,
		MaxConnsPerHost:        maxConns,
		IdleConnTimeout:        idle,
		MaxResponseHeaderBytes: maxHeaders,
		Protocols:              new(http.Protocols),
		HTTP2: &http.HTTP2Config{
			MaxReceiveBufferPerConnection: schema.MaxResult,
			MaxReceiveBufferPerStream:     schema.MaxResult,
			SendPingTimeout:               silence,
			PingTimeout:                   silence,
		},
	}
	t.Protocols.SetHTTP1(true)
	t.Protocols.SetHTTP2(true)
	return pool{Transport: t, close: end}
}

// tied is a connection that is closed with its pool, in any state.
type tied struct {
	net.Conn
	untie func() bool
}

func (c *tied) Close() error {
	c.untie()
	return c.Conn.Close()
}
