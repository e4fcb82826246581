package snapshot_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookfabric/hookfabric/bus/snapshot"
	"pgregory.net/rapid"
)

// A tree is a folder by the paths in it: a folder is "dir", a link "-> " and
// where it points to, a file "file " or "run " and its content.
type tree map[string]string

func (tr tree) make(t testing.TB, dir string) {
	t.Helper()
	for name, what := range tr {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch {
		case what == "dir":
			err = os.MkdirAll(file, 0o755)
		case len(what) > 3 && what[:3] == "-> ":
			err = os.Symlink(what[3:], file)
		case what[:4] == "run ":
			err = os.WriteFile(file, []byte(what[4:]), 0o750)
		default:
			err = os.WriteFile(file, []byte(what[5:]), 0o640)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// read is what a folder holds.
func read(t testing.TB, dir string) tree {
	t.Helper()
	got := tree{}
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, file)
		if err != nil || name == "." {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		switch mode := info.Mode(); {
		case mode.IsDir():
			got[name] = "dir"
		case mode.Type() == fs.ModeSymlink:
			target, err := os.Readlink(file)
			got[name] = "-> " + target
			return err
		default:
			data, err := os.ReadFile(file)
			got[name] = "file " + string(data)
			if mode&0o100 != 0 {
				got[name] = "run " + string(data)
			}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func pack(t testing.TB, dir string) ([]byte, []snapshot.Omission) {
	t.Helper()
	var b bytes.Buffer
	left, err := snapshot.Pack(t.Context(), dir, &b)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), left
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256-" + hex.EncodeToString(sum[:])
}

// trees draws folders, also with strange names, and links in them to anything
// in them.
func trees() *rapid.Generator[tree] {
	name := rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "c", "ü b", "x\ny", "\xff", ".hidden", "-rf", "back\\slash"}),
		rapid.StringMatching(`[a-z]{1,3}`))
	return rapid.Custom(func(t *rapid.T) tree {
		tr, dirs := tree{}, []string{"."}
		for range rapid.IntRange(0, 12).Draw(t, "entries") {
			at := path.Join(rapid.SampledFrom(dirs).Draw(t, "in"), name.Draw(t, "name"))
			if _, taken := tr[at]; taken {
				continue
			}
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				tr[at], dirs = "dir", append(dirs, at)
			case 1:
				to, _ := filepath.Rel(path.Dir(at), rapid.SampledFrom(dirs).Draw(t, "to"))
				tr[at] = "-> " + to
			case 2:
				tr[at] = "run " + string(rapid.SliceOf(rapid.Byte()).Draw(t, "content"))
			default:
				tr[at] = "file " + string(rapid.SliceOf(rapid.Byte()).Draw(t, "content"))
			}
		}
		return tr
	})
}

// The same content is always packed to the same bytes.
func TestUnpackRestoresWhatPackWrote(t *testing.T) {
	base, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		dir := filepath.Join(base, fmt.Sprint(n))
		want := trees().Draw(rt, "tree")
		from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
		if err := os.MkdirAll(from, 0o700); err != nil {
			rt.Fatal(err)
		}
		want.make(t, from)
		data, left := pack(t, from)
		if len(left) > 0 {
			rt.Errorf("left out: %v", left)
		}
		if err := snapshot.Unpack(t.Context(), bytes.NewReader(data), to); err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(want, read(t, to)); diff != "" {
			rt.Errorf("packed -, unpacked +:\n%s", diff)
		}
		if again, _ := pack(t, to); !bytes.Equal(data, again) {
			rt.Error("the same content is other bytes")
		}
	})
}
