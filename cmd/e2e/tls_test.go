package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/bustest"
)

// TestOtherMachines has a broker listen on an address that other machines can reach, which requires
// credentials and TLS. The broker refuses a client that lacks one of them, and the client's error
// names what is missing.
func TestOtherMachines(t *testing.T) {
	t.Parallel()
	data, ca := t.TempDir(), bustest.NewAuthority(t, "ours")
	creds := filepath.Join(t.TempDir(), "op.creds")
	for _, args := range [][]string{{"init"}, {"add", "operator", "op", "--out", creds}} {
		p := start(t, "broker", append(append([]string{"creds"}, args...), "--data", data)...)
		if code, err := p.wait(); err != nil || code != 0 {
			t.Fatalf("creds %v ended with %d, %v:\n%s", args, code, err, p.said)
		}
	}
	files := ca.Issue(t, "server")
	b := start(t, "broker", "--data", data, "--listen", "0.0.0.0:0", "--http", "", "--tls-cert", files.Cert, "--tls-key", files.Key)
	bound := b.mustSay(t, 0, `(?m)^  bus +(tls://\S+)$`)[1]
	url := "tls://127.0.0.1" + bound[strings.LastIndexByte(bound, ':'):]
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--creds", creds, "--tls-ca", ca.File}, 0, "hooks"},
		{[]string{"--creds", creds}, 1, "--tls-ca"},
		{[]string{"--tls-ca", ca.File}, 1, "broker creds add"},
	} {
		p := start(t, "broker", append([]string{"status", "--nats", url}, c.args...)...)
		if code, err := p.wait(); err != nil || code != c.code || !strings.Contains(p.said.String(), c.want) {
			t.Errorf("with %v it ended with %d, %v and said %q; want %q", c.args, code, err, p.said, c.want)
		}
	}
}
