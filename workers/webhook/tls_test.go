package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// authority signs certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := new(authority)
	template := certificate("authority")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a.key = newKey(t)
	a.cert = a.sign(t, template, template, a.key)
	return a
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func certificate(name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"policy.example"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
}

func (a *authority) sign(t testing.TB, c, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// issue makes a certificate and its key, in PEM form.
func (a *authority) issue(t testing.TB, c *x509.Certificate) (cert, key []byte) {
	t.Helper()
	private := newKey(t)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return a.pem(a.sign(t, c, a.cert, private)), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func (*authority) pem(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// folder writes files into a new folder.
func folder(t testing.TB, contents map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range contents {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// serveTLS starts a server on loopback that offers HTTP/2, unless change prevents it. The
// folder has a client's files: ca.pem, cert.pem and key.pem.
func serveTLS(t testing.TB, h http.Handler, change func(*httptest.Server, *authority)) (url, dir string) {
	t.Helper()
	a := newAuthority(t)
	c := certificate("server")
	c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	cert, key := a.issue(t, c)
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // tests cause failing handshakes
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.EnableHTTP2 = true
	if change != nil {
		change(s, a)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	mine, secret := a.issue(t, certificate("worker"))
	return s.URL, folder(t, map[string][]byte{"ca.pem": a.pem(a.cert), "cert.pem": mine, "key.pem": secret})
}

// whoCalls answers with the protocol and the client's name.
func whoCalls(w http.ResponseWriter, r *http.Request) {
	who := "anonymous"
	if len(r.TLS.PeerCertificates) > 0 {
		who = r.TLS.PeerCertificates[0].Subject.CommonName
	}
	http.Error(w, r.Proto+" "+who, http.StatusUnprocessableEntity)
}

func TestTLSFollowsTheHooksSettings(t *testing.T) {
	for name, c := range map[string]struct {
		tls    schema.TLS
		server func(*httptest.Server, *authority)
		want   string
		err    string
	}{
		"a server of an untrusted authority is not asked": {err: "certificate signed by unknown authority"},
		"the hook's own authority is trusted":             {tls: schema.TLS{CA: "ca.pem"}, want: "HTTP/2.0 anonymous"},
		"a server without HTTP/2 is asked without it": {
			tls: schema.TLS{CA: "ca.pem"}, server: func(s *httptest.Server, _ *authority) { s.EnableHTTP2 = false }, want: "HTTP/1.1 anonymous"},
		"a server that asks for a certificate is shown the hook's": {
			tls:    schema.TLS{CA: "ca.pem", Cert: "cert.pem", Key: "key.pem"},
			server: func(s *httptest.Server, a *authority) { demand(s, a) }, want: "HTTP/2.0 worker"},
		"a server that asks for a certificate refuses a hook without": {
			tls: schema.TLS{CA: "ca.pem"}, server: func(s *httptest.Server, a *authority) { demand(s, a) }, err: "could not be asked"}, // with the server's words, unless it hangs up before they are read
		"the hook can name the certificate's name":                 {tls: schema.TLS{CA: "ca.pem", ServerName: "policy.example"}, want: "HTTP/2.0 anonymous"},
		"a certificate without the hook's server name is rejected": {tls: schema.TLS{CA: "ca.pem", ServerName: "other.example"}, err: "not other.example"},
		"a server that only knows TLS 1.1 is not asked": {
			tls: schema.TLS{CA: "ca.pem"}, server: func(s *httptest.Server, _ *authority) { age(s) }, err: "could not be asked"},
	} {
		t.Run(name, func(t *testing.T) {
			url, dir := serveTLS(t, http.HandlerFunc(whoCalls), c.server)
			hook := hookOf(url)
			hook.TLS = c.tls
			got, err := load(t, quiet(), hook, dir).Handle(t.Context(), runnertest.Event("Bash"))
			if c.err != "" {
				expectError(t, err, url, c.err)
			} else if err != nil || got.Reason != c.want {
				t.Errorf("the answer is %q, error %v; want %q", got.Reason, err, c.want)
			}
		})
	}
}

// age limits a server to an old TLS version, which excludes HTTP/2.
func age(s *httptest.Server) {
	s.EnableHTTP2, s.TLS.MinVersion, s.TLS.MaxVersion = false, tls.VersionTLS10, tls.VersionTLS11
}

// demand makes a server require certificates of a.
func demand(s *httptest.Server, a *authority) {
	s.TLS.ClientAuth, s.TLS.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	s.TLS.ClientCAs.AddCert(a.cert)
}

func TestFilesAreLookedUpInTheFoldersInOrder(t *testing.T) {
	a := newAuthority(t)
	good := folder(t, map[string][]byte{"ca.pem": a.pem(a.cert)})
	bad := folder(t, map[string][]byte{"ca.pem": []byte("nothing")})
	for name, c := range map[string]struct {
		file string
		dirs []string
		err  string
	}{
		"a folder without it is passed over":  {file: "ca.pem", dirs: []string{t.TempDir(), good}},
		"the first file of that name decides": {file: "./ca.pem", dirs: []string{bad, good}, err: "is not a PEM file"},
		"an absolute path is taken as it is":  {file: filepath.Join(good, "ca.pem"), dirs: []string{bad}},
		"a relative one needs a folder":       {file: "ca.pem", err: "no folder to look in"},
		"an absolute one must be there":       {file: filepath.Join(bad, "gone.pem"), dirs: []string{good}, err: "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := files(c.dirs).config(schema.TLS{CA: c.file})
			if c.err != "" {
				expectError(t, err, c.err)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestInvalidFilesAreLoadErrors(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue(t, certificate("worker"))
	other, _ := a.issue(t, certificate("other"))
	dir := folder(t, map[string][]byte{
		"cert.pem": cert, "key.pem": key, "other.pem": other, "text.pem": []byte("-----NOTHING"), "large.pem": append(cert, make([]byte, maxFile)...),
		"broken.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}),
	})
	if err := os.Mkdir(filepath.Join(dir, "folder.pem"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		tls  schema.TLS
		want []string
	}{
		"an authority that is not there":   {schema.TLS{CA: "gone.pem"}, []string{"tls: ca", `"gone.pem"`, dir, "put it there"}},
		"an authority that is text":        {schema.TLS{CA: "text.pem"}, []string{"text.pem is not a PEM file"}},
		"an authority that is a key":       {schema.TLS{CA: "key.pem"}, []string{"key.pem has no certificate"}},
		"an authority that is broken":      {schema.TLS{CA: "broken.pem"}, []string{"broken.pem has an invalid certificate"}},
		"an authority that is a folder":    {schema.TLS{CA: "folder.pem"}, []string{`there is no file "folder.pem" in `}},
		"an authority that is a device":    {schema.TLS{CA: os.DevNull}, []string{os.DevNull + " is not a file"}},
		"an authority that is huge":        {schema.TLS{CA: "large.pem"}, []string{"large.pem has more than 1048576 bytes"}},
		"a certificate without its key":    {schema.TLS{Cert: "cert.pem"}, []string{"only one of cert and key"}},
		"a key without its certificate":    {schema.TLS{Key: "key.pem"}, []string{"only one of cert and key"}},
		"a certificate that is not there":  {schema.TLS{Cert: "gone.pem", Key: "key.pem"}, []string{"tls: cert", `"gone.pem"`}},
		"a key that is not there":          {schema.TLS{Cert: "cert.pem", Key: "gone.pem"}, []string{"tls: key", `"gone.pem"`}},
		"a key of another certificate":     {schema.TLS{Cert: "other.pem", Key: "key.pem"}, []string{"other.pem", "key.pem", "does not match"}},
		"the two the other way round":      {schema.TLS{Cert: "key.pem", Key: "cert.pem"}, []string{"key.pem and", "are not a certificate and its key"}},
		"a key without permission to read": {schema.TLS{CA: unreadable(t)}, []string{"give the worker permission to read it"}},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.Contains(name, "permission") && os.Geteuid() == 0 {
				t.Skip("root may read every file, so the error of an unreadable file was NOT tested")
			}
			hook := hookOf("https://policy.example/hook")
			hook.TLS = c.tls
			r := quiet()
			defer r.Close()
			_, err := r.Load(hook, workers.Site{Dirs: []string{dir}})
			expectError(t, err, c.want...)
			if err != nil && strings.Contains(err.Error(), "BEGIN PRIVATE") {
				t.Errorf("the error contains the key: %v", err)
			}
		})
	}
}

func unreadable(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret.pem")
	if err := os.WriteFile(file, []byte("x"), 0o000); err != nil {
		t.Fatal(err)
	}
	return file
}
