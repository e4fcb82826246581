package ops_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/certs"
	"github.com/hookfabric/hookfabric/bus/certs/certstest"
	"github.com/hookfabric/hookfabric/cmd/internal/ops"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// Where other machines can reach it, health and metrics are served with TLS, and not
// without; on loopback they are plain.
func TestOtherMachinesAreServedWithTLS(t *testing.T) {
	ca := certstest.New(t, "ours")
	files := ca.Issue(t, "server")
	var stack program.Stack
	defer func() { _ = stack.Stop(context.Background()) }()
	serve := func(addr string, files certs.Files) (string, error) {
		return ops.Serve(ops.Options{Addr: addr, TLS: files, Registry: ops.Registry(), Ready: func() error { return errors.New("not yet") }}, &stack)
	}
	if _, err := serve("0.0.0.0:0", certs.Files{}); err == nil || !strings.Contains(err.Error(), "--tls-cert") {
		t.Errorf("without a certificate: %v", err)
	}
	plain, err := serve("127.0.0.1:0", files)
	if err != nil || !strings.HasPrefix(plain, "http://127.0.0.1:") {
		t.Errorf("on loopback it is at %q, %v", plain, err)
	}
	url, err := serve("0.0.0.0:0", files)
	if err != nil {
		t.Fatal(err)
	}
	port, ok := strings.CutPrefix(url, "https://[::]:")
	if !ok {
		port, _ = strings.CutPrefix(url, "https://0.0.0.0:")
	}
	roots, err := certs.Files{CA: ca.File}.Roots()
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://127.0.0.1:"+port+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusServiceUnavailable || string(body) != "not yet\n" {
		t.Errorf("it says %d %q, %v", answer.StatusCode, body, err)
	}
}
