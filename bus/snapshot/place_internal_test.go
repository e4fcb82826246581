package snapshot

import (
	"os"
	"path/filepath"
	"testing"
)

// TestStepAside replaces folders as it is done where the system cannot swap
// them at once.
func TestStepAside(t *testing.T) {
	dir, tmp := filepath.Join(t.TempDir(), "dir"), filepath.Join(t.TempDir(), "tmp")
	for _, was := range []string{"", "1"} {
		is := was + "1"
		if err := os.MkdirAll(filepath.Join(tmp, is), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := stepAside(tmp, dir); err != nil {
			t.Fatal(err)
		}
		_, now := os.Lstat(filepath.Join(dir, is))
		_, before := os.Lstat(filepath.Join(tmp, was))
		if now != nil || (before == nil) != (was != "") {
			t.Errorf("in its place: %v; what was there before: %v", now, before)
		}
		if err := os.RemoveAll(tmp); err != nil {
			t.Fatal(err)
		}
	}
	if err := stepAside(filepath.Join(tmp, "gone"), dir); err == nil {
		t.Error("what is not there took a folder's place")
	}
	if _, err := os.Lstat(filepath.Join(dir, "11")); err != nil {
		t.Errorf("the folder is not in its place any more: %v", err)
	}
}
