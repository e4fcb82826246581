//go:build unix

package install_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install"
)

// TestAFileKeepsItsOwner checks that files keep their owners if root installs for another user.
func TestAFileKeepsItsOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away: that owners are kept is not tested")
	}
	dir := plant(t, tree{"root/home/u/.claude/settings.json": `{"a":1}`})
	file := filepath.Join(dir, "root/home/u/.claude/settings.json")
	giveAway(t, dir, "root/home/u", "root/home/u/.claude", settings)
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

// giveAway changes the owner of files below a folder to another user, who can reach them.
func giveAway(t *testing.T, dir string, files ...string) {
	t.Helper()
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil { //nolint:gosec // others are to pass
			t.Fatal(err)
		}
	}
	for _, name := range append([]string{"root", "root/home"}, files...) {
		path := filepath.Join(dir, name)
		if slices.Contains(files, name) {
			if err := os.Lchown(path, 12345, 23456); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Chmod(path, 0o755); err != nil { //nolint:gosec // others are to pass
			t.Fatal(err)
		}
	}
}

// TestRootFollowsLinksNoFurtherThanTheirOwner has a user's links lead to files and folders of root, and
// to one of the user.
func TestRootFollowsLinksNoFurtherThanTheirOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can follow others' links: that they lead nowhere is not tested")
	}
	for name, test := range map[string]struct {
		link, to string
		works    bool
	}{
		"the file is root's":             {settings, "etc/secret.json", false},
		"the file is root's to read":     {settings, "etc/open.json", false},
		"the folder is root's":           {"root/home/u/.claude", "etc", false},
		"the file is nowhere yet":        {"root/home/u/.claude", "etc/new", false},
		"it is the user's, by this name": {settings, "root/home/u/dotfiles.json", true},
	} {
		t.Run(name, func(t *testing.T) {
			before := tree{"etc/secret.json": `{"secret":1}`, "etc/open.json": `{"a":1}`, "etc/settings.json": `{"b":1}`, "root/home/u/dotfiles.json": "{}", "root/home/u/x": ""}
			dir := plant(t, before)
			link := filepath.Join(dir, test.link)
			if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil { //nolint:gosec // it is the user's
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(dir, test.to), link); err != nil {
				t.Fatal(err)
			}
			for path, mode := range map[string]os.FileMode{"etc": 0o755, "etc/secret.json": 0o600, "etc/open.json": 0o644, "etc/settings.json": 0o644} {
				if err := os.Chmod(filepath.Join(dir, path), mode); err != nil {
					t.Fatal(err)
				}
			}
			owned := []string{"root/home/u", "root/home/u/dotfiles.json", test.link}
			if test.link == settings {
				owned = append(owned, "root/home/u/.claude")
			}
			giveAway(t, dir, owned...)
			p, err := request(dir, "claude", install.User).Install(t.Context())
			if err == nil {
				_, err = p.Apply(time.Now())
			}
			if (err == nil) != test.works {
				t.Errorf("error %v", err)
			}
			for name, text := range before {
				if got, err := os.ReadFile(filepath.Join(dir, name)); (err != nil || string(got) != text) && !test.works {
					t.Errorf("%s is %q now, %v", name, got, err)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "etc/new")); err == nil {
				t.Error("a folder was made in root's")
			}
			if strings.Contains(p.Diff(), "secret") {
				t.Error("what the user cannot read is shown")
			}
		})
	}
}

// TestNewFoldersAreForWhomTheyShould checks that a strict umask does not hide the machine's hooks from its
// users.
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

// TestRootLeavesOthersFoldersAlone checks that Foreign predicts the owner of a folder.
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

// TestAPipeIsNotWaitedFor checks that a pipe in place of a configuration does not block an installation.
func TestAPipeIsNotWaitedFor(t *testing.T) {
	dir := plant(t, tree{"root/home/u/.claude/other": ""})
	if err := syscall.Mkfifo(filepath.Join(dir, settings), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := request(dir, "claude", install.User).Install(t.Context()); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("error %v", err)
	}
}

// TestWhatCanNotBeWrittenLeavesNothing limits the space for the new content, as on a full disk.
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
		if err == nil || !strings.Contains(err.Error(), "agentshim changed nothing") {
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
