//go:build unix

package realm_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/bus/server/realm"
)

// otherUser is not root, and otherGroup has another number.
const (
	otherUser  = 65534
	otherGroup = 65533
)

// TestTheFoldersOwnerCanReadChangesOfRoot holds that a revocation by root reaches a broker
// that runs as another user.
func TestTheFoldersOwnerCanReadChangesOfRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: only root can give files away, so that a broker of another user can read what root changed stays untested")
	}
	data := t.TempDir()
	if err := os.Chown(data, otherUser, otherGroup); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(data, "broker", "auth")
	keep := func(creds []byte) error { return realm.WriteFile(filepath.Join(data, "a.creds"), creds) }
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"init", func() error { return realm.Init(t.Context(), dir, realm.Limits{}) }},
		{"tenant add", func() error { return realm.AddTenant(t.Context(), dir, "blue", realm.Limits{}) }},
		{"add", func() error { _, err := realm.Add(t.Context(), dir, agent("a"), keep); return err }},
		{"renew", func() error { _, err := realm.Renew(t.Context(), dir, "", "a", nil, keep); return err }},
		{"revoke", func() error { _, err := realm.Revoke(t.Context(), dir, "", "a"); return err }},
		{"add, after an older release left root's", func() error {
			if err := os.Chown(filepath.Join(dir, "realm.json"), 0, 0); err != nil {
				return err
			}
			_, err := realm.Add(t.Context(), dir, agent("b"), nowhere)
			return err
		}},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		belongs(t, step.name, data)
	}
}

// The worker that uses them runs as this user, in a folder of another user.
func TestRenewedCredentialsKeepTheirOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: only root can give files away, so that renewed credentials stay readable to who had them stays untested")
	}
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "w.creds")
	keep := func(creds []byte) error { return realm.WriteFile(file, creds) }
	if err := realm.Init(t.Context(), dir, realm.Limits{}); err != nil {
		t.Fatal(err)
	}
	if _, err := realm.Add(t.Context(), dir, agent("w"), keep); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(file, otherUser, otherGroup); err != nil {
		t.Fatal(err)
	}
	if _, err := realm.Renew(t.Context(), dir, "", "w", nil, keep); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if s := info.Sys().(*syscall.Stat_t); s.Uid != otherUser || s.Gid != otherGroup || info.Mode() != 0o600 {
		t.Errorf("they belong to %d:%d, %v", s.Uid, s.Gid, info.Mode())
	}
}

// The old lock may be a link to another user's file.
func TestAnExistingLockKeepsItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("NOT TESTED: only root can give files away, so that it gives away only what it made stays untested")
	}
	data, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(data, otherUser, otherGroup); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Join(data, "lock")); err != nil {
		t.Fatal(err)
	}
	if err := realm.Init(t.Context(), data, realm.Limits{}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(secret)
	if err != nil {
		t.Fatal(err)
	}
	if s := info.Sys().(*syscall.Stat_t); s.Uid != 0 {
		t.Errorf("what the lock was a link to belongs to %d now", s.Uid)
	}
}

// belongs checks that everything in a folder is otherUser's.
func belongs(t *testing.T, after, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files++
		if s := info.Sys().(*syscall.Stat_t); s.Uid != otherUser || s.Gid != otherGroup {
			t.Errorf("after %s %s belongs to %d:%d", after, path, s.Uid, s.Gid)
		}
		return nil
	})
	if err != nil || files < 7 { // the folder, three in it, the realm, the lock, and keys
		t.Errorf("after %s there are %d files: %v", after, files, err)
	}
}
