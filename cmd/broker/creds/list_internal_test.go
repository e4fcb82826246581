package creds

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus/server/access"
	"github.com/hookfabric/hookfabric/bus/server/realm"
)

// What is listed of credentials says, before they expire, that they will.
func TestCredentialsThatExpireSoonAreReported(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "auth")
	if err := realm.Init(t.Context(), dir, realm.Limits{}); err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	_, err := realm.Add(t.Context(), dir, realm.Issue{Name: "olga", Grant: access.Grant{Role: access.Operator}, For: 30 * day}, func([]byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	r, err := realm.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for after, want := range map[time.Duration]string{day: "good", 27 * day: "expiring", 31 * day: "expired"} {
		l := list(r, "", time.Now().Add(after))
		var said bytes.Buffer
		warn(&said, l)
		if l.Users[0].State != want || strings.Contains(said.String(), "broker creds renew olga --tenant default") != (want == "expiring") {
			t.Errorf("after %s: %s, %q", after, l.Users[0].State, said.String())
		}
	}
}
