package builtin

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// A folder that the worker cannot read may contain links for an agent that can.
func TestAnUnreadableFolderDoesNotCountAsEmpty(t *testing.T) {
	dir := tree(t, "w/locked/in/x", "w/src/in/x", "w/file")
	for path, mode := range map[string]os.FileMode{filepath.Dir(dir): 0o755, filepath.Join(dir, "w/locked"): 0} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { // so that a user other than root can remove the folder
		if err := os.Chmod(filepath.Join(dir, "w/locked"), 0o755); err != nil {
			t.Error(err)
		}
	})
	if os.Getuid() == 0 {
		runtime.LockOSThread() // only this thread changes its user
		defer runtime.UnlockOSThread()
		if err := syscall.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := syscall.Setfsuid(0); err != nil {
				t.Error(err)
			}
		}()
	}
	h := permission(t, map[string]any{"allow": []any{dir + "/w"}})
	for pattern, want := range map[string]string{
		"locked/*/x":  "permission denied",
		"l*/i*/x":     "permission denied",
		"src/*/x":     "",
		"nowhere/*/x": "",
		"file/*/x":    "",
	} {
		if got := judged(t, h, filepath.Join(dir, "w"), "Glob", `{"pattern":"`+pattern+`"}`); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: refused %q, want %q", pattern, got, want)
		}
	}
}
