//go:build unix

package install_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/cmd/agentshim/install"
)

// TestAFileKeepsItsOwner holds that root can install for somebody else.
func TestAFileKeepsItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away: that owners are kept is not tested")
	}
	dir := plant(t, tree{"root/home/u/.claude/settings.json": `{"a":1}`})
	file := filepath.Join(dir, "root/home/u/.claude/settings.json")
	for _, path := range []string{file, filepath.Join(dir, "root/home/u")} {
		if err := os.Chown(path, 12345, 23456); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"claude", "codex"} {
		p, err := request(dir, name, install.User).Install(t.Context())
		do(t, p, err)
	}
	kept, err := filepath.Glob(file + ".before-agentshim-*")
	if err != nil || len(kept) != 1 {
		t.Fatalf("%q, %v", kept, err)
	}
	for _, path := range []string{file, kept[0], filepath.Join(dir, "root/home/u/.codex"), filepath.Join(dir, "root/home/u/.codex/hooks.json")} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); s.Uid != 12345 || s.Gid != 23456 {
			t.Errorf("%s belongs to %d:%d", path, s.Uid, s.Gid)
		}
	}
}

// TestNewFoldersAreForWhomTheyShould holds that a strict umask does not hide the
// machine's hooks from its users.
func TestNewFoldersAreForWhomTheyShould(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	for _, test := range []struct {
		scope install.Scope
		path  string
		mode  os.FileMode
	}{
		{install.Managed, "root/etc/claude-code/managed-settings.d", 0o755},
		{install.Managed, "root/etc/claude-code/managed-settings.d/50-agentshim.json", 0o644},
		{install.User, "root/home/u/.claude", 0o700},
		{install.User, settings, 0o600},
	} {
		dir := t.TempDir()
		p, err := request(dir, "claude", test.scope).Install(t.Context())
		do(t, p, err)
		if info, err := os.Stat(filepath.Join(dir, test.path)); err != nil || info.Mode().Perm() != test.mode {
			t.Errorf("%s: %v, %v", test.path, info.Mode(), err)
		}
	}
}

// TestRootLeavesOthersFoldersAlone holds that it is known whose a folder will be.
func TestRootLeavesOthersFoldersAlone(t *testing.T) {
	dir := t.TempDir()
	below := filepath.Join(dir, "state/hookfabric")
	if install.Foreign(below) {
		t.Error("the own folder is somebody else's")
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give folders away: that those of others are left alone is not tested")
	}
	if err := os.Chown(dir, 12345, 23456); err != nil {
		t.Fatal(err)
	}
	if !install.Foreign(below) {
		t.Error("somebody else's folder is the own")
	}
}

// TestAPipeIsNotWaitedFor holds that who puts a pipe where a configuration should
// be stops nobody.
func TestAPipeIsNotWaitedFor(t *testing.T) {
	dir := plant(t, tree{"root/home/u/.claude/other": ""})
	if err := syscall.Mkfifo(filepath.Join(dir, settings), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := request(dir, "claude", install.User).Install(t.Context()); err == nil || !strings.Contains(err.Error(), "is no file") {
		t.Errorf("error %v", err)
	}
}

// TestWhatCanNotBeWrittenLeavesNothing has no room for what is longer than what
// was there, as on a full disk.
func TestWhatCanNotBeWrittenLeavesNothing(t *testing.T) {
	const mode = "INSTALL_ON_A_FULL_DISK"
	if dir := os.Getenv(mode); dir != "" {
		limit := syscall.Rlimit{Cur: 100, Max: 100}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		p, err := request(dir, "claude", install.User).Install(t.Context())
		if err == nil {
			_, err = p.Apply(time.Now())
		}
		if err == nil || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("error %v", err)
		}
		return
	}
	files := tree{settings: `{"a":1}`}
	dir := plant(t, files)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), mode+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if diff := cmp.Diff(files, harvest(t, dir)); diff != "" {
		t.Error(diff)
	}
}
