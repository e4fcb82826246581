package certs_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server/certs"
)

// A renewed certificate is shown by the next handshake, and one that makes no
// sense changes nothing but the log.
func TestAServerFollowsItsFiles(t *testing.T) {
	ca := bustest.NewAuthority(t, "ours")
	files := ca.Issue(t, "server")
	var log bytes.Buffer
	conf, err := files.Server(slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	first := shown(t, conf, certs.Files{CA: ca.File})
	if again := shown(t, conf, certs.Files{CA: ca.File}); !again.Equal(first) {
		t.Error("another certificate is shown although nothing changed")
	}
	ca.Issue(t, "server")
	second := shown(t, conf, certs.Files{CA: ca.File})
	if second.Equal(first) {
		t.Error("the renewed certificate is not shown")
	}
	if err := os.WriteFile(files.Key, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if kept := shown(t, conf, certs.Files{CA: ca.File}); !kept.Equal(second) {
			t.Error("a faulty key took the certificate away")
		}
	}
	if n := strings.Count(log.String(), "the earlier certificates"); n != 1 {
		t.Errorf("the fault was said %d times:\n%s", n, log.String())
	}
	ca.Issue(t, "server")
	if third := shown(t, conf, certs.Files{CA: ca.File}); third.Equal(second) {
		t.Error("the mended certificate is not shown")
	}
}

// A server that names an authority takes clients of it alone, also of one that
// takes its place while the server runs.
func TestAServerDemandsCertificates(t *testing.T) {
	ours, theirs := bustest.NewAuthority(t, "ours"), bustest.NewAuthority(t, "theirs")
	trusted := filepath.Join(t.TempDir(), "trusted.pem")
	give(t, ours.File, trusted)
	files := ours.Issue(t, "server")
	files.CA = trusted
	conf, err := files.Server(nil)
	if err != nil {
		t.Fatal(err)
	}
	mine, other := ours.Issue(t, "client"), theirs.Issue(t, "client")
	mine.CA, other.CA = ours.File, ours.File
	if _, err := handshake(t, conf, mine); err != nil {
		t.Error(err)
	}
	for name, f := range map[string]certs.Files{"none": {CA: ours.File}, "another authority's": other} {
		if _, err := handshake(t, conf, f); err == nil {
			t.Errorf("a client is let in that shows %s", name)
		}
	}
	give(t, theirs.File, trusted)
	if _, err := handshake(t, conf, other); err != nil {
		t.Errorf("the authority that is trusted now: %v", err)
	}
	if _, err := handshake(t, conf, mine); err == nil {
		t.Error("the authority of before is still trusted")
	}
}

func TestFaultyFilesAreErrors(t *testing.T) {
	ca := bustest.NewAuthority(t, "ours")
	pair, other := ca.Issue(t, "one"), ca.Issue(t, "two")
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		files certs.Files
		want  string
	}{
		"nothing":                  {certs.Files{}, ""},
		"all of it":                {certs.Files{CA: ca.File, Cert: pair.Cert, Key: pair.Key}, ""},
		"no key":                   {certs.Files{Cert: pair.Cert}, "--tls-key"},
		"no certificate":           {certs.Files{Key: pair.Key}, "--tls-cert"},
		"another's key":            {certs.Files{Cert: pair.Cert, Key: other.Key}, "its private key"},
		"a certificate not there":  {certs.Files{Cert: "/nowhere.pem", Key: pair.Key}, "/nowhere.pem"},
		"an authority not there":   {certs.Files{CA: "/nowhere.pem"}, "/nowhere.pem"},
		"an authority without one": {certs.Files{CA: empty}, "has no certificate"},
	} {
		err := c.files.Check()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
	if _, err := (certs.Files{Cert: pair.Cert, Key: other.Key}).Server(nil); err == nil {
		t.Error("a server begins with a pair that does not fit")
	}
}

// shown is the certificate that a client is shown.
func shown(t *testing.T, conf *tls.Config, client certs.Files) *x509.Certificate {
	t.Helper()
	c, err := handshake(t, conf, client)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// handshake connects a client to a server, and returns what both agree on.
func handshake(t *testing.T, conf *tls.Config, client certs.Files) (*x509.Certificate, error) {
	t.Helper()
	mine := &tls.Config{ServerName: "localhost"}
	var err error
	if mine.RootCAs, err = client.Roots(); err != nil {
		t.Fatal(err)
	}
	if client.Shows() {
		pair, err := client.Pair()
		if err != nil {
			t.Fatal(err)
		}
		mine.Certificates = []tls.Certificate{pair}
	}
	here, there := net.Pipe()
	defer here.Close()
	served := make(chan error, 1)
	go func() {
		defer there.Close()
		served <- tls.Server(there, conf).HandshakeContext(t.Context())
	}()
	c := tls.Client(here, mine)
	if err := c.HandshakeContext(t.Context()); err != nil {
		return nil, err
	}
	// The last word is the server's: it is read while the client waits for more.
	go func() { _, _ = c.Read(make([]byte, 1)) }()
	if err := <-served; err != nil {
		return nil, err
	}
	return c.ConnectionState().PeerCertificates[0], nil
}

func give(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(to+".new", to); err != nil {
		t.Fatal(err)
	}
}

func TestAKeyThatOthersCanReadIsRefused(t *testing.T) {
	files := bustest.NewAuthority(t, "ours").Issue(t, "server")
	if err := os.Chmod(files.Key, 0o644); err != nil {
		t.Fatal(err)
	}
	_, server := files.Server(nil)
	_, client := files.Client()
	for name, err := range map[string]error{"check": files.Check(), "server": server, "client": client} {
		if err == nil || !strings.Contains(err.Error(), "chmod 600 "+files.Key) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
