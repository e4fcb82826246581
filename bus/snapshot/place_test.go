package snapshot_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookfabric/hookfabric/bus/snapshot"
)

// counted counts who began to read.
type counted struct {
	r     io.Reader
	began *atomic.Int64
	once  sync.Once
}

func (c *counted) Read(b []byte) (int, error) {
	c.once.Do(func() { c.began.Add(1) })
	return c.r.Read(b)
}

func TestOfManyOneUnpacks(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "deep", "to")
	tree{"d/f": "file x", "g": "run y"}.make(t, from)
	data, _ := pack(t, from)
	var began atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			r := &counted{r: bytes.NewReader(data), began: &began}
			if err := snapshot.UnpackOnce(t.Context(), r, to, digest(data)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if began.Load() != 1 || !snapshot.Holds(to, digest(data)) {
		t.Errorf("%d read the snapshot; the folder is there: %v", began.Load(), snapshot.Holds(to, digest(data)))
	}
	if err := os.RemoveAll(to); err != nil {
		t.Fatal(err)
	}
	if err := snapshot.UnpackOnce(t.Context(), bytes.NewReader(data), to, digest(data)); err != nil || len(read(t, to)) != 3 {
		t.Errorf("a folder that was taken away is not made again: %v", err)
	}
}

func TestAnotherSnapshotThanTheOneThatWasNamedIsRefused(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	tree{"f": "file x"}.make(t, from)
	data, _ := pack(t, from)
	for name, d := range map[string]string{"another digest": digest(nil), "none": ""} {
		err := snapshot.UnpackOnce(t.Context(), bytes.NewReader(data), to, d)
		if _, serr := os.Lstat(to); !errors.Is(err, snapshot.ErrBad) || serr == nil || snapshot.Holds(to, d) {
			t.Errorf("%s: %v; the folder: %v", name, err, serr)
		}
	}
}

// The test replaces a folder all the time, and reads a file in it.
func TestReadersSeeTheOldFolderOrTheNew(t *testing.T) {
	to := filepath.Join(t.TempDir(), "to")
	var versions [2][]byte
	for i := range versions {
		from := t.TempDir()
		tree{"v": fmt.Sprintf("file %d", i)}.make(t, from)
		versions[i], _ = pack(t, from)
	}
	if err := snapshot.Unpack(t.Context(), bytes.NewReader(versions[0]), to); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var writers, readers sync.WaitGroup
	for i := range versions {
		writers.Go(func() {
			for range 50 {
				if err := snapshot.UnpackOnce(t.Context(), bytes.NewReader(versions[i]), to, digest(versions[i])); err != nil {
					t.Error(err)
				}
			}
		})
	}
	seen := map[string]int{}
	readers.Go(func() {
		for ctx.Err() == nil {
			data, err := os.ReadFile(filepath.Join(to, "v"))
			if err != nil {
				t.Error(err)
			}
			seen[string(data)]++
		}
	})
	writers.Wait()
	stop()
	readers.Wait()
	delete(seen, "0")
	delete(seen, "1")
	if len(seen) > 0 {
		t.Errorf("seen: %v", seen)
	}
}

// TestReadersOfTheOldFolderCanContinue holds on to a folder that is replaced.
func TestReadersOfTheOldFolderCanContinue(t *testing.T) {
	base := t.TempDir()
	to := filepath.Join(base, "to")
	tree{"d/f": "file x"}.make(t, to)
	root, err := os.OpenRoot(to)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := snapshot.Unpack(t.Context(), bytes.NewReader(archive(t, file("g"))), to); err != nil {
		t.Fatal(err)
	}
	if data, err := root.ReadFile("d/f"); string(data) != "x" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	// The next one takes it away.
	if err := snapshot.Unpack(t.Context(), bytes.NewReader(archive(t, file("h"))), to); err != nil {
		t.Fatal(err)
	}
	want := tree{"to": "dir", "to/h": "file x", ".to.old": "dir", ".to.old/g": "file x", ".to.lock": "file "}
	if diff := cmp.Diff(want, read(t, base)); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

// Build tools leave read-only folders. An old folder that cannot be deleted must not fail the replacement.
func TestAFolderThatCannotBeDeletedIsReplaced(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("NOT TESTED AS ROOT, who may sweep everything: a folder that cannot be swept")
	}
	to := filepath.Join(t.TempDir(), "to")
	for n := range 4 {
		from := t.TempDir()
		tree{"f": fmt.Sprintf("file %d", n)}.make(t, from)
		data, _ := pack(t, from)
		if err := snapshot.UnpackOnce(t.Context(), bytes.NewReader(data), to, digest(data)); err != nil || !snapshot.Holds(to, digest(data)) {
			t.Errorf("the folder no. %d is there: %v, %v", n, snapshot.Holds(to, digest(data)), err)
		}
		cache := filepath.Join(to, "cache")
		if err := errors.Join(os.Mkdir(cache, 0o755), os.WriteFile(filepath.Join(cache, "f"), nil, 0o644), os.Chmod(cache, 0o555)); err != nil {
			t.Fatal(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(to), ".to.*"))
	if err != nil || len(left) != 3 { // the lock, the digest, and the folder before
		t.Errorf("beside it are %q, %v", left, err)
	}
	t.Cleanup(func() { // the read-only folders
		err := filepath.WalkDir(filepath.Dir(to), func(path string, _ fs.DirEntry, _ error) error { return os.Chmod(path, 0o755) })
		if err != nil {
			t.Error(err)
		}
	})
}

func TestLeftoversOfCrashesAreDeleted(t *testing.T) {
	base := t.TempDir()
	tree{".to.unpacking-1/d/f": "file x", ".to.unpacking-2": "file x", ".too.unpacking-3": "file x", ".to.old/f": "file x"}.make(t, base)
	if err := snapshot.Unpack(t.Context(), bytes.NewReader(archive(t, file("f"))), filepath.Join(base, "to")); err != nil {
		t.Fatal(err)
	}
	want := tree{"to": "dir", "to/f": "file x", ".too.unpacking-3": "file x", ".to.lock": "file "}
	if diff := cmp.Diff(want, read(t, base)); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
}

func TestWaitingForTheLockEndsWithTheContext(t *testing.T) {
	to := filepath.Join(t.TempDir(), "to")
	r, w := io.Pipe()
	var first sync.WaitGroup
	first.Go(func() { _ = snapshot.Unpack(t.Context(), r, to) })
	if _, err := w.Write([]byte{0x1f}); err != nil { // read by who holds the lock
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	err := snapshot.Unpack(ctx, strings.NewReader(""), to)
	if err == nil || !strings.Contains(err.Error(), "waiting for other processes that unpack there: enough") {
		t.Errorf("error %v", err)
	}
	w.Close()
	first.Wait()
}

func TestTheRootOfAFileSystemIsNotReplaced(t *testing.T) {
	if err := snapshot.Unpack(t.Context(), strings.NewReader(""), "/"); err == nil || !strings.Contains(err.Error(), "name a folder in it") {
		t.Errorf("error %v", err)
	}
}
