package realm_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"

	"github.com/hookfabric/hookfabric/bus/server/realm"
)

// copied is another folder of the same realm.
func copied(t *testing.T, dir string) string {
	t.Helper()
	other := t.TempDir()
	if err := os.CopyFS(other, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	// CopyFS gives the copies the modes of new files.
	seeds, err := filepath.Glob(filepath.Join(other, "seeds", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, seed := range seeds {
		if err := os.Chmod(seed, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return other
}

// takes has one folder hear of another one, and reports whether it learned something.
func takes(t *testing.T, to, from string) bool {
	t.Helper()
	data, err := read(t, from).Public()
	if err != nil {
		t.Fatal(err)
	}
	news, err := realm.Take(t.Context(), to, data)
	if err != nil {
		t.Fatal(err)
	}
	return news
}

func TestFoldersOfOneRealmArePutTogether(t *testing.T) {
	a := made(t)
	for _, name := range []string{"alice", "bob"} {
		if _, err := realm.Add(t.Context(), a, agent(name), nowhere); err != nil {
			t.Fatal(err)
		}
	}
	b := copied(t, a)
	if takes(t, a, b) {
		t.Error("a copy knows something new")
	}
	// Each learns something that the other does not know.
	_, err := realm.Revoke(t.Context(), a, "", "alice")
	_, err2 := realm.Revoke(t.Context(), b, "", "bob")
	_, err3 := realm.Add(t.Context(), b, agent("carol"), nowhere)
	if err := errors.Join(err, err2, err3, realm.AddTenant(t.Context(), b, "blue", realm.Limits{})); err != nil {
		t.Fatal(err)
	}
	if !takes(t, a, b) || !takes(t, b, a) || takes(t, a, b) || read(t, a).Sum() != read(t, b).Sum() {
		t.Error("they do not come to know the same")
	}
	for _, dir := range []string{a, b} {
		r := read(t, dir)
		tenant, err := r.Tenant("")
		if err != nil {
			t.Fatal(err)
		}
		account, err := jwt.DecodeAccountClaims(tenant.JWT)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range r.Users {
			if account.Revocations.IsRevoked(u.Key, u.Issued) != (u.Name != "carol") {
				t.Errorf("%s: %+v", u.Name, account.Revocations)
			}
		}
		if _, err := r.Tenant("blue"); err != nil || len(r.Users) != 3 {
			t.Errorf("%+v, %v", r.Users, err)
		}
	}
	// Whose key is elsewhere gets credentials there.
	i := agent("dora")
	i.Tenant = "blue"
	_, err = realm.Add(t.Context(), a, i, nowhere)
	refused(t, err, "on the server that created the tenant")
}

// An old folder never lets anybody in again.
func TestAnOldFolderChangesNothing(t *testing.T) {
	a := made(t)
	if _, err := realm.Add(t.Context(), a, agent("alice"), nowhere); err != nil {
		t.Fatal(err)
	}
	old := copied(t, a)
	if _, err := realm.Revoke(t.Context(), a, "", "alice"); err != nil {
		t.Fatal(err)
	}
	if takes(t, a, old) || read(t, a).Users[0].Revoked.IsZero() {
		t.Errorf("%+v", read(t, a).Users)
	}
	if !takes(t, old, a) || read(t, old).Users[0].Revoked.IsZero() {
		t.Errorf("%+v", read(t, old).Users)
	}
}

func TestForeignRealmsAreNotMerged(t *testing.T) {
	a, foreign := made(t), made(t)
	before := read(t, a).Sum()
	data, err := read(t, foreign).Public()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := realm.Take(t.Context(), a, data); !errors.Is(err, realm.ErrForeign) {
		t.Errorf("%v", err)
	}
	_, err = realm.Take(t.Context(), a, []byte(`{"users":[]}`))
	refused(t, err, "cannot use the realm")
	b := copied(t, a)
	for _, dir := range []string{a, b} {
		if err := realm.AddTenant(t.Context(), dir, "blue", realm.Limits{}); err != nil {
			t.Fatal(err)
		}
	}
	two := read(t, a).Sum()
	data, err = read(t, b).Public()
	if err != nil {
		t.Fatal(err)
	}
	_, err = realm.Take(t.Context(), a, data)
	refused(t, err, "two servers created a tenant blue")
	if two == before || read(t, a).Sum() != two {
		t.Error("something was changed by it")
	}
}

// Two servers may give a name credentials at the same time: both end together.
func TestAllCredentialsOfANameAreRevoked(t *testing.T) {
	a := made(t)
	b := copied(t, a)
	for _, dir := range []string{a, b} {
		if _, err := realm.Add(t.Context(), dir, agent("alice"), nowhere); err != nil {
			t.Fatal(err)
		}
	}
	takes(t, a, b)
	if _, err := realm.Revoke(t.Context(), a, "", "alice"); err != nil {
		t.Fatal(err)
	}
	for _, u := range read(t, a).Users {
		if !u.Ended(time.Now()) {
			t.Errorf("%+v", u)
		}
	}
}
