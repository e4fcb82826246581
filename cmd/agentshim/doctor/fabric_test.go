package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/access"
	"github.com/hookfabric/hookfabric/bus/access/realm"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/embedded"
)

// What credentials are not for is said at once, and with it which ones are.
func TestTheDoctorSaysWhichCredentialsItNeeds(t *testing.T) {
	dir, file := filepath.Join(t.TempDir(), "auth"), filepath.Join(t.TempDir(), "h.creds")
	if err := realm.Init(t.Context(), dir, realm.Limits{}); err != nil {
		t.Fatal(err)
	}
	s := bustest.StartWith(t, embedded.Options{Listen: "127.0.0.1:0", Auth: dir})
	_, err := realm.Add(t.Context(), dir, realm.Issue{Name: "h", Grant: access.Grant{Role: access.Host, Agents: []string{access.Everyone}}},
		func(creds []byte) error { return os.WriteFile(file, creds, 0o600) })
	if err != nil {
		t.Fatal(err)
	}
	for creds, want := range map[string]string{"": "this fabric asks who you are; make a file with `broker creds add operator NAME`", file: "which `broker creds add operator NAME` makes"} {
		r := Examine(t.Context(), Options{Machine: machine(t, nil), NATS: s.ClientURL(), Creds: creds, State: t.TempDir()})
		if r.Bus.Reached || !strings.Contains(r.Bus.Why, want) {
			t.Errorf("with %q it says %q; want %q", creds, r.Bus.Why, want)
		}
	}
}
