package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookfabric/hookfabric/bus/snapshot"
)

func TestLinksWithinTheFolderAreKept(t *testing.T) {
	for name, c := range map[string]struct{ at, to, kept string }{
		"to a file beside it":                {"l", "f", "f"},
		"to a folder":                        {"l", "d", "d"},
		"up and down again":                  {"d/l", "../f", "../f"},
		"in a long form":                     {"l", "./d//../f", "f"},
		"to nothing":                         {"l", "gone", "gone"},
		"to the folder itself":               {"l", ".", "."},
		"to itself":                          {"l", "l", ""},
		"absolute, into the folder":          {"d/l", "ROOT/f", "../f"},
		"absolute, to the folder":            {"d/l", "ROOT", ".."},
		"absolute, elsewhere":                {"l", "/etc/passwd", ""},
		"absolute, beside the folder":        {"l", "ROOT-2/f", ""},
		"above the folder":                   {"l", "../x", ""},
		"above the folder from below":        {"d/l", "../../x", ""},
		"above the folder and back":          {"l", "../ROOTNAME/f", ""},
		"above the folder through a link":    {"l", "up/../../x", ""},
		"other than it looks, by a link":     {"l", "up/../f", ""},
		"to nothing, by what is not there":   {"l", "gone/../f", ""},
		"through another link in the folder": {"l", "up/f", "up/f"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "from")
			tree{"f": "file x", "d/e/f": "file y", "up": "-> d/e"}.make(t, dir)
			to := strings.NewReplacer("ROOTNAME", "from", "ROOT", dir).Replace(c.to)
			if err := os.Symlink(to, filepath.Join(dir, c.at)); err != nil {
				t.Fatal(err)
			}
			data, left := pack(t, dir)
			got := filepath.Join(t.TempDir(), "to")
			if err := snapshot.Unpack(t.Context(), bytes.NewReader(data), got); err != nil {
				t.Fatal(err)
			}
			kept := strings.TrimPrefix(read(t, got)[c.at], "-> ")
			if kept != c.kept || (c.kept == "") != (len(left) == 1) {
				t.Errorf("kept %q, not %q; left out: %v", kept, c.kept, left)
			}
		})
	}
}

func TestSpecialFilesAreLeftOut(t *testing.T) {
	dir := t.TempDir()
	tree{"d/f": "file x"}.make(t, dir)
	if err := syscall.Mkfifo(filepath.Join(dir, "d/pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, left := pack(t, dir)
	want := []snapshot.Omission{{Path: "d/pipe", Why: "is neither a file nor a folder nor a link"}}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// Agents work where the workspaces of others are unpacked. If those were shared
// on, each answer would hold all before it, and soon be too large.
func TestReceivedFoldersAreNotShared(t *testing.T) {
	dir := t.TempDir()
	tree{"f": "file x", "d/temp_workspaces/agent1/f": "file y", "d/temp_workspaces/.agent1.old/f": "file z", "temp_workspaces": "file mine"}.make(t, dir)
	data, left := pack(t, dir)
	want := []snapshot.Omission{{Path: "d/temp_workspaces", Why: "holds what others shared"}}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	to := filepath.Join(t.TempDir(), "to")
	if err := snapshot.Unpack(t.Context(), bytes.NewReader(data), to); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tree{"f": "file x", "d": "dir", "temp_workspaces": "file mine"}, read(t, to)); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// onFirst calls do before the first byte is written, when the folder was looked
// at, and nothing was read yet but the first entry.
type onFirst struct {
	bytes.Buffer
	do func()
}

func (w *onFirst) Write(b []byte) (int, error) {
	if w.do != nil {
		w.do()
		w.do = nil
	}
	return w.Buffer.Write(b)
}

// watching looks into a folder whenever something is written.
type watching struct {
	dir  string
	seen []string
}

func (w *watching) Write(b []byte) (int, error) {
	entries, err := os.ReadDir(w.dir)
	for _, e := range entries {
		w.seen = append(w.seen, e.Name())
	}
	return len(b), err
}

// A process that is killed while it packs leaves nothing behind.
func TestLargeFilesAreHeldWithoutAName(t *testing.T) {
	w := watching{dir: t.TempDir()}
	t.Setenv("TMPDIR", w.dir)
	dir := t.TempDir()
	data := make([]byte, 6<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(data) // what cannot be compressed is written bit by bit
	if err := os.WriteFile(filepath.Join(dir, "f"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if left, err := snapshot.Pack(t.Context(), dir, &w); err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	if len(w.seen) > 0 {
		t.Errorf("there were %q", w.seen[0])
	}
}

func TestFilesThatChangeWhileTheyArePackedSpoilNothing(t *testing.T) {
	dir := t.TempDir()
	tree{"a": "dir", "grows": "file 1", "shrinks": "file " + strings.Repeat("x", 9<<20), "vanishes": "file x",
		"pipe": "file x", "link": "file x", "stays": "file y", "d/f": "file z"}.make(t, dir)
	must := func(err error) {
		if err != nil {
			t.Error(err)
		}
	}
	w := onFirst{do: func() {
		tree{"grows": "file 1234"}.make(t, dir)
		must(os.Truncate(filepath.Join(dir, "shrinks"), 5<<20))
		for _, name := range []string{"vanishes", "pipe", "link", "d/f", "d"} {
			must(os.Remove(filepath.Join(dir, name)))
		}
		must(syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
		must(os.Symlink("stays", filepath.Join(dir, "link")))
	}}
	left, err := snapshot.Pack(t.Context(), dir, &w)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "to")
	if err := snapshot.Unpack(t.Context(), &w.Buffer, to); err != nil {
		t.Fatal(err)
	}
	want := tree{"a": "dir", "d": "dir", "grows": "file 1234", "shrinks": "file " + strings.Repeat("x", 5<<20), "stays": "file y"}
	if diff := cmp.Diff(want, read(t, to)); diff != "" {
		t.Errorf("want -, got +:\n%.2000s", diff)
	}
	const replaced, vanished = "was replaced while the folder was packed", "vanished while the folder was packed"
	wantLeft := []snapshot.Omission{{"d/f", vanished}, {"link", replaced}, {"pipe", replaced}, {"vanishes", vanished}}
	if diff := cmp.Diff(wantLeft, left); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestFoldersThatAreTooLargeAreRefusedByName(t *testing.T) {
	for name, c := range map[string]struct {
		make func(dir string) error
		says string
	}{
		"too many bytes": {func(dir string) error {
			tree{"big/f": "file x", "small": "file x"}.make(t, dir)
			return os.Truncate(filepath.Join(dir, "big/f"), snapshot.MaxBytes+1)
		}, `256 MiB of them in "big"`},
		"too many files": {func(dir string) error {
			tree{"many": "dir", "few/f": "file x"}.make(t, dir)
			for i := range snapshot.MaxFiles {
				if err := os.WriteFile(filepath.Join(dir, "many", fmt.Sprint(i)), nil, 0o600); err != nil {
					return err
				}
			}
			return nil
		}, `in "many"`},
		"too deep": {func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", snapshot.MaxDepth+2)), 0o700)
		}, "in more than 100 folders"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := c.make(dir); err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			_, err := snapshot.Pack(t.Context(), dir, &b)
			if !errors.Is(err, snapshot.ErrTooLarge) || !strings.Contains(err.Error(), c.says) || b.Len() > 0 {
				t.Errorf("%d bytes, error %v", b.Len(), err)
			}
		})
	}
}

func TestAFolderThatCannotBePackedIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, file + "/x", filepath.Join(t.TempDir(), "gone")} {
		if _, err := snapshot.Pack(t.Context(), dir, io.Discard); err == nil || !strings.Contains(err.Error(), "packing the folder "+dir) {
			t.Errorf("%s: error %v", dir, err)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if _, err := snapshot.Pack(ctx, t.TempDir(), io.Discard); err == nil || !strings.Contains(err.Error(), "enough") {
		t.Errorf("error %v", err)
	}
}
