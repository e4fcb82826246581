package server_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/server/realm"
)

// Until the realm is readable again, the old permissions apply.
func TestAnUnreadableRealmIsReported(t *testing.T) {
	t.Parallel()
	dir := newRealm(t)
	file := filepath.Join(dir, "realm.json")
	s := bustest.StartWith(t, server.Options{Auth: dir})
	if s.RealmUnreadable() {
		t.Error("it cannot be read from the start")
	}
	creds := credentials(t, dir, operator("b", ""))
	sound, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	letIn(t, s, creds)
	for _, c := range []struct {
		name         string
		damage, mend func() error
	}{
		{"damaged", func() error { return realm.WriteFile(file, []byte("{}")) }, func() error { return realm.WriteFile(file, sound) }},
		{"gone", func() error { return os.Rename(file, file+".away") }, func() error { return os.Rename(file+".away", file) }},
	} {
		if err := c.damage(); err != nil {
			t.Fatal(err)
		}
		unreadable(t, c.name, s, true)
		letIn(t, s, creds)
		if err := c.mend(); err != nil {
			t.Fatal(err)
		}
		unreadable(t, c.name+", and mended", s, false)
	}
}

func TestAServerWithoutCredentialsHasNoUnreadableRealm(t *testing.T) {
	if bustest.Start(t).RealmUnreadable() {
		t.Error("there is no realm, and it cannot be read")
	}
}

// TestCredentialsAreNamedByTheirKeys also if they were made after the server began.
func TestCredentialsAreNamedByTheirKeys(t *testing.T) {
	t.Parallel()
	dir := newRealm(t)
	add := func(name string) (key string) {
		t.Helper()
		u, err := realm.Add(t.Context(), dir, operator(name, ""), func([]byte) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return u.Key
	}
	before := add("before")
	s := bustest.StartWith(t, server.Options{Auth: dir})
	after := add("after")
	bustest.Eventually(t, "the server knows the new credentials", func() bool { return s.CredentialName(after) == "after" })
	if s.CredentialName(before) != "before" || s.CredentialName("U") != "" || bustest.Start(t).CredentialName(before) != "" {
		t.Errorf("%q, %q", s.CredentialName(before), s.CredentialName("U"))
	}
}

// unreadable waits until a server tells whether it can read its realm.
func unreadable(t *testing.T, when string, s *server.Server, want bool) {
	t.Helper()
	bustest.Eventually(t, fmt.Sprintf("%s the realm cannot be read: %v", when, want), func() bool { return s.RealmUnreadable() == want })
}

// letIn waits until the server accepts credentials.
func letIn(t *testing.T, s *server.Server, creds string) {
	t.Helper()
	for ctx := within(t); ; { // the server looks twice a second
		nc, err := bus.Connect(ctx, bus.Options{InProcess: s, Creds: creds})
		if err == nil {
			nc.Close()
			return
		}
		if !errors.Is(err, bus.ErrRefused) {
			t.Fatal(err)
		}
	}
}
