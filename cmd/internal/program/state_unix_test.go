//go:build unix

package program

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// stranger is the id of another user.
const stranger = 54321

// Without a home, state must be in a folder that no other user can replace.
func TestStateIsInAFolderOfTheUserAlone(t *testing.T) {
	own := os.Geteuid()
	for name, c := range map[string]struct {
		make func(t *testing.T, runtime, shared, id string)
		uid  int
		want string // below the folder of the test
	}{
		"no folder exists":                 {func(*testing.T, string, string, string) {}, own, "shared/hookfabric-ID"},
		"a folder of the login":            {func(t *testing.T, runtime, _, id string) { mkdir(t, filepath.Join(runtime, id), 0o700) }, own, "run/ID/hookfabric"},
		"one that others can read":         {func(t *testing.T, runtime, _, id string) { mkdir(t, filepath.Join(runtime, id), 0o755) }, own, "shared/hookfabric-ID"},
		"the user's own of an earlier run": {func(t *testing.T, _, shared, id string) { mkdir(t, filepath.Join(shared, "hookfabric-"+id), 0o700) }, own, "shared/hookfabric-ID"},
		"one that others can write to":     {func(t *testing.T, _, shared, id string) { mkdir(t, filepath.Join(shared, "hookfabric-"+id), 0o777) }, own, ""},
		"a link": {func(t *testing.T, _, shared, id string) {
			to := filepath.Join(shared, "elsewhere")
			mkdir(t, to, 0o700)
			if err := os.Symlink(to, filepath.Join(shared, "hookfabric-"+id)); err != nil {
				t.Fatal(err)
			}
		}, own, ""},
		"another user's": {func(t *testing.T, _, shared, id string) { mkdir(t, filepath.Join(shared, "hookfabric-"+id), 0o700) }, stranger, ""},
		"no writable folder": {func(t *testing.T, _, shared, _ string) {
			if err := os.Remove(shared); err != nil {
				t.Fatal(err)
			}
		}, own, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			runtime, shared, id := filepath.Join(dir, "run"), filepath.Join(dir, "shared"), strconv.Itoa(c.uid)
			mkdir(t, runtime, 0o755)
			mkdir(t, shared, 0o777)
			c.make(t, runtime, shared, id)
			want := ""
			if c.want != "" {
				want = filepath.Join(dir, strings.ReplaceAll(c.want, "ID", id))
			}
			if got := private(c.uid, runtime, shared); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func mkdir(t *testing.T, dir string, mode os.FileMode) {
	t.Helper()
	if err := os.Mkdir(dir, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
}
