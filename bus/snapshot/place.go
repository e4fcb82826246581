package snapshot

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// UnpackOnce is [Unpack] of the snapshot with that digest, which is "sha256-" and the hex digits of the SHA-256 of its
// bytes. Another digest of r is an error. If dir was made from the snapshot before, r is not read, so r should start to
// fetch at its first read.
func UnpackOnce(ctx context.Context, r io.Reader, dir, digest string) error {
	if digest == "" {
		return fmt.Errorf("unpacking into the folder %s: %w: it has no digest", dir, ErrBad)
	}
	p, err := newPlace(dir)
	if err != nil || p.holds(digest) {
		return err
	}
	if err := p.lock(ctx); err != nil {
		return p.wrap(err)
	}
	defer p.unlock()
	// Another process may have unpacked it.
	if p.holds(digest) {
		return nil
	}
	return p.wrap(p.fill(ctx, r, digest))
}

// MakeOthers makes the folder [Others] in dir, which must exist, and returns its path. A link in its place is an error,
// because it could lead out of dir.
func MakeOthers(dir string) (string, error) {
	dir = filepath.Join(dir, Others)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no folder", dir)
	}
	return dir, err
}

// Holds reports whether [UnpackOnce] has made dir from the snapshot with that digest, and dir still exists.
func Holds(dir, digest string) bool {
	p, err := newPlace(dir)
	return err == nil && p.holds(digest)
}

// A place is the target of an unpack. Beside the folder are hidden names that begin with its name: its lock, the digest
// of its content, the folder that is being unpacked, and the previous folder.
type place struct {
	dir    string
	parent string
	hidden string
	locked *os.File
}

func newPlace(dir string) (*place, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("unpacking into the folder %s: %w", dir, err)
	}
	if filepath.Dir(abs) == abs {
		return nil, fmt.Errorf("unpacking into the folder %s: the root of a file system cannot be replaced; name a folder in it", dir)
	}
	return &place{dir: abs, parent: filepath.Dir(abs), hidden: "." + filepath.Base(abs)}, nil
}

func (p *place) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("unpacking into the folder %s: %w", p.dir, err)
}

// beside returns a hidden name beside the folder.
func (p *place) beside(suffix string) string {
	return filepath.Join(p.parent, p.hidden+suffix)
}

func (p *place) holds(digest string) bool {
	said, err := os.ReadFile(p.beside(".digest"))
	if err != nil || digest == "" || string(said) != digest {
		return false
	}
	info, err := os.Lstat(p.dir)
	return err == nil && info.IsDir()
}

// lock locks the folder for this caller, among all processes.
func (p *place) lock(ctx context.Context) error {
	if err := os.MkdirAll(p.parent, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(p.beside(".lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		ok, err := tryLock(f)
		if ok {
			p.locked = f
			return nil
		}
		if err == nil {
			err = pause(ctx, wait)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("waiting for other processes that unpack there: %w", err), f.Close())
		}
	}
}

// unlock keeps the file: a process that waits for the lock has it open, and a new file would have another lock.
func (p *place) unlock() { _ = p.locked.Close() }

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fill unpacks r beside the folder and replaces the folder. The caller holds the lock.
func (p *place) fill(ctx context.Context, r io.Reader, digest string) error {
	p.sweep()
	tmp := p.beside(unpacking + rand.Text())
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return err
	}
	if err := p.into(ctx, r, tmp, digest); err != nil {
		takeAway(tmp)
		return err
	}
	// Readers of the old folder can continue until the next replacement.
	if err := os.Rename(tmp, p.beside(old)); err != nil {
		takeAway(tmp)
	}
	return nil
}

// takeAway deletes a folder, also one with read-only folders in it. The next call of sweep deletes the rest.
func takeAway(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	root, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), filepath.Base(dir), func(name string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = root.Chmod(name, 0o700)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

// The suffixes of the hidden names.
const (
	unpacking = ".unpacking-"
	old       = ".old"
)

// sweep deletes the folder that was replaced before, and the leftovers of processes that died.
func (p *place) sweep() {
	takeAway(p.beside(old))
	entries, _ := os.ReadDir(p.parent)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), p.hidden+unpacking) {
			takeAway(filepath.Join(p.parent, e.Name()))
		}
	}
}

func (p *place) into(ctx context.Context, r io.Reader, tmp, digest string) error {
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return err
	}
	defer root.Close()
	sum := sha256.New()
	all := io.TeeReader(&bounded{r: r, left: MaxBytes + MaxFiles*maxOverhead}, sum)
	if err := extract(ctx, all, root); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, all); err != nil {
		return bad("its end cannot be read", err)
	}
	if got := "sha256-" + hex.EncodeToString(sum.Sum(nil)); digest != "" && got != digest {
		return fmt.Errorf("%w: its digest is %s, not %.80q; fetch it again", ErrBad, got, digest)
	}
	return p.swap(tmp, digest)
}

// swap replaces the old folder with the new one, and stores its digest.
func (p *place) swap(tmp, digest string) error {
	if err := os.Remove(p.beside(".digest")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := replace(tmp, p.dir); err != nil || digest == "" {
		return err
	}
	note := p.beside(unpacking + rand.Text())
	if err := os.WriteFile(note, []byte(digest), 0o644); err != nil {
		return err
	}
	return os.Rename(note, p.beside(".digest"))
}

// stepAside replaces a folder on systems without an atomic exchange: for a moment dir does not exist.
func stepAside(tmp, dir string) error {
	aside := tmp + "-aside"
	err := os.Rename(dir, aside)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Rename(tmp, dir)
	}
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		return errors.Join(err, os.Rename(aside, dir))
	}
	return os.Rename(aside, tmp)
}
