package snapshot

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Unpack replaces dir with the content of the snapshot when all of it is unpacked, or leaves it unchanged. Any snapshot
// writes only to dir and to hidden names beside it.
func Unpack(ctx context.Context, r io.Reader, dir string) error {
	p, err := newPlace(dir)
	if err != nil {
		return err
	}
	if err := p.lock(ctx); err != nil {
		return p.wrap(err)
	}
	defer p.unlock()
	return p.wrap(p.fill(ctx, r, ""))
}

// extract writes what the archive in r holds into root, which is empty.
func extract(ctx context.Context, r io.Reader, root *os.Root) error {
	gz, err := gzip.NewReader(r)
	if err != nil {
		return bad("it is not compressed as it should be", err)
	}
	plain := &bounded{r: gz, left: MaxBytes + MaxFiles*maxOverhead}
	x := extractor{root: root, room: MaxBytes, kinds: map[string]byte{".": tar.TypeDir}, tar: tar.NewReader(plain)}
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		h, err := x.tar.Next()
		if errors.Is(err, io.EOF) {
			// Read the checksum at the end.
			_, err = io.Copy(io.Discard, plain)
			return bad("the archive is damaged or cut off", err)
		}
		if err != nil {
			return bad("the archive is damaged or cut off", err)
		}
		if err := x.entry(h); err != nil {
			return err
		}
	}
}

// bad wraps an error of an archive, except errors of limits and of the reader.
func bad(what string, err error) error {
	if err == nil || errors.Is(err, ErrTooLarge) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %s: %w", ErrBad, what, err)
}

// refuse returns the error of an invalid entry.
func refuse(name, why string) error { return fmt.Errorf("%w: its entry %.200q %s", ErrBad, name, why) }

// An extractor writes the entries of an archive.
type extractor struct {
	root *os.Root
	tar  *tar.Reader
	// kinds are the entries so far. A folder comes before its contents, and each name once.
	kinds map[string]byte
	room  int64
}

func (x *extractor) entry(h *tar.Header) error {
	name := strings.TrimSuffix(strings.TrimPrefix(h.Name, "./"), "/")
	if name == "" || name == "." {
		if h.Typeflag == tar.TypeDir {
			return nil
		}
		return refuse(h.Name, "is the folder itself, and no folder")
	}
	if err := x.check(name); err != nil {
		return err
	}
	x.kinds[name] = h.Typeflag
	switch h.Typeflag {
	case tar.TypeDir:
		return x.made(name, x.root.Mkdir(name, 0o755))
	case tar.TypeSymlink:
		short, ok := inside(name, h.Linkname)
		if !ok || short != h.Linkname {
			return refuse(name, "is a link that leads out of the folder, or is not written in the shortest form")
		}
		return x.made(name, x.root.Symlink(h.Linkname, name))
	case tar.TypeReg:
		return x.file(name, h)
	}
	return refuse(name, "is neither a file nor a folder nor a symbolic link")
}

// check rejects names outside of the folder, and too many names.
func (x *extractor) check(name string) error {
	switch {
	case path.Clean(name) != name || path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../") || strings.ContainsRune(name, 0):
		return refuse(name, "has a name that may lead out of the folder")
	case deep(name):
		return errDeep(name)
	case len(x.kinds) > MaxFiles:
		return fmt.Errorf("%w: it holds more than %d files and folders", ErrTooLarge, MaxFiles)
	}
	if _, twice := x.kinds[name]; twice {
		return refuse(name, "comes twice")
	}
	if kind, known := x.kinds[path.Dir(name)]; !known || kind != tar.TypeDir {
		return refuse(name, "lies in a folder that does not come before it")
	}
	return nil
}

func (x *extractor) file(name string, h *tar.Header) error {
	if x.room -= h.Size; x.room < 0 || h.Size < 0 {
		return fmt.Errorf("%w: its files have more than %d MiB together", ErrTooLarge, MaxBytes>>20)
	}
	perm := fs.FileMode(0o644)
	if h.Mode&0o100 != 0 {
		perm = 0o755
	}
	f, err := x.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return x.made(name, err)
	}
	_, err = io.Copy(writer{f}, reader{x.tar})
	return x.made(name, errors.Join(err, f.Close()))
}

// made adds the name of the entry to an error of writing it.
func (x *extractor) made(name string, err error) error {
	if err == nil {
		return nil
	}
	if r, ok := errors.AsType[*readError](err); ok {
		return bad("the archive is damaged or cut off", r.err)
	}
	return fmt.Errorf("writing %.200q: %s", name, reason(err))
}

// A reader marks its errors, to distinguish them from those of a writer.
type reader struct{ io.Reader }

type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }

func (r reader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &readError{err: err}
	}
	return n, err
}

// A writer hides the ReadFrom method of a file.
type writer struct{ io.Writer }

// bounded is a reader that fails if an uncompressed archive exceeds the size of any valid one.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: the archive does not end", ErrTooLarge)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
