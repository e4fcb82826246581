package server_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/server/certs"
)

// secured starts a server with a certificate, and returns its URL and the options
// of a client that trusts it.
func secured(t *testing.T, files certs.Files, trusted string) (*server.Server, bus.Options) {
	t.Helper()
	s := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0", TLS: files})
	if !strings.HasPrefix(s.ClientURL(), "tls://") {
		t.Errorf("the URL is %s", s.ClientURL())
	}
	return s, bus.Options{URL: s.ClientURL(), TLS: certs.Files{CA: trusted}}
}

func TestClientsAndServerSpeakTLS(t *testing.T) {
	ca := bustest.NewAuthority(t, "ours")
	s, o := secured(t, ca.Issue(t, "server"), ca.File)
	for _, url := range []string{o.URL, strings.Replace(o.URL, "tls://", "nats://", 1)} {
		o.URL = url
		nc, err := bus.Connect(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if err := flush(t, nc); err != nil {
			t.Error(err)
		}
	}
	bustest.Connect(t, s, "in this process") // needs no certificate
}

func TestErrorsOfTLSSayWhatToDo(t *testing.T) {
	ours, theirs := bustest.NewAuthority(t, "ours"), bustest.NewAuthority(t, "theirs")
	plain := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0"})
	good := ours.Issue(t, "server")
	demanding := good
	demanding.CA = ours.File
	stale, foreign := ours.Issue(t, "stale", bustest.ExpiredCert), theirs.Issue(t, "foreign")
	_, trusting := secured(t, good, ours.File)
	_, strict := secured(t, demanding, ours.File)
	_, expired := secured(t, ours.Issue(t, "expired", bustest.ExpiredCert), ours.File)
	_, misnamed := secured(t, ours.Issue(t, "misnamed", bustest.CertFor("bus.example.org")), ours.File)
	for name, c := range map[string]struct {
		url   string
		files certs.Files
		want  string
	}{
		"an unnamed authority":               {trusting.URL, certs.Files{}, "name that authority's certificate with --tls-ca"},
		"another authority":                  {trusting.URL, certs.Files{CA: theirs.File}, "name that authority's certificate with --tls-ca"},
		"a client that wants no TLS":         {strings.Replace(trusting.URL, "tls:", "nats:", 1), certs.Files{}, "--tls-ca"},
		"a server without TLS":               {plain.ClientURL(), certs.Files{CA: ours.File}, "the server does not use TLS"},
		"an expired certificate":             {expired.URL, certs.Files{CA: ours.File}, "renew it"},
		"a certificate for another host":     {misnamed.URL, certs.Files{CA: ours.File}, "is for bus.example.org"},
		"a client that shows none":           {strict.URL, certs.Files{CA: ours.File}, "the server requires a client certificate"},
		"a client of another authority":      {strict.URL, certs.Files{CA: ours.File, Cert: foreign.Cert, Key: foreign.Key}, "does not trust the certificate"},
		"a client whose own is over":         {strict.URL, certs.Files{CA: ours.File, Cert: stale.Cert, Key: stale.Key}, "stale.pem"},
		"a client whose files are not there": {strict.URL, certs.Files{CA: "/nowhere.pem"}, "/nowhere.pem"},
	} {
		nc, err := bus.Connect(t.Context(), bus.Options{URL: c.url, TLS: c.files})
		if err == nil {
			nc.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
	mine := ours.Issue(t, "client")
	strict.TLS.Cert, strict.TLS.Key = mine.Cert, mine.Key
	nc, err := bus.Connect(t.Context(), strict)
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

// New connections get a renewed certificate, and open connections stay.
func TestACertificateIsRenewedWhileTheServerRuns(t *testing.T) {
	ca := bustest.NewAuthority(t, "ours")
	files := ca.Issue(t, "server")
	_, o := secured(t, files, ca.File)
	lost := make(chan bool, 10)
	o.OnState = func(connected bool) { lost <- !connected }
	first, err := bus.Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if <-lost {
		t.Fatal("no connection was made")
	}
	before, _ := first.TLSConnectionState()
	ca.Issue(t, "server")
	o.OnState = nil
	second, err := bus.Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	after, _ := second.TLSConnectionState()
	if after.PeerCertificates[0].Equal(before.PeerCertificates[0]) {
		t.Error("the renewed certificate is not shown")
	}
	if err := os.WriteFile(files.Cert, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	third, err := bus.Connect(t.Context(), o)
	if err != nil {
		t.Fatalf("a faulty file took the certificate away: %v", err)
	}
	defer third.Close()
	if err := flush(t, first); err != nil || len(lost) > 0 {
		t.Errorf("the first connection was dropped: %v", err)
	}
}

func TestAServerWithoutACertificateRequiresNone(t *testing.T) {
	ca := bustest.NewAuthority(t, "ours")
	_, err := server.Start(t.Context(), server.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0", TLS: certs.Files{CA: ca.File}})
	wantError(t, err, "--tls-cert")
}

func TestOtherMachinesTakeCredentialsToo(t *testing.T) {
	ca := bustest.NewAuthority(t, "ours")
	_, err := server.Start(t.Context(), server.Options{Dir: t.TempDir(), Listen: "0.0.0.0:0", TLS: ca.Issue(t, "server")})
	wantError(t, err, "broker creds init")
}

// flush waits until the server has heard what was said.
func flush(t *testing.T, nc *nats.Conn) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return nc.FlushWithContext(ctx)
}
