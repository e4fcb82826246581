package snapshot

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Pack writes the folder dir to w, with the same bytes for the same content. It leaves out links that lead out of the
// folder, files of other kinds, and files that are deleted during the call, and returns what it left out. If the
// folder is too large it writes nothing.
func Pack(ctx context.Context, dir string, w io.Writer) ([]Omission, error) {
	left, err := pack(ctx, dir, w)
	if err != nil {
		return nil, fmt.Errorf("packing the folder %s: %w", dir, err)
	}
	return left, nil
}

func pack(ctx context.Context, dir string, w io.Writer) ([]Omission, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, errors.New(reason(err))
	}
	defer root.Close()
	s := newScan(root, dir)
	if err := s.folder(ctx, "."); err != nil {
		return nil, err
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	gz := gzip.NewWriter(w)
	p := packer{scan: s, tar: tar.NewWriter(gz), left: MaxBytes}
	for _, e := range s.entries {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if err := p.entry(e); err != nil {
			return nil, err
		}
	}
	return s.left, errors.Join(p.tar.Close(), gz.Close())
}

// A packer writes the entries of a scan.
type packer struct {
	scan *scan
	tar  *tar.Writer
	// left is how many bytes files may still have.
	left int64
}

func (p *packer) entry(e entry) error {
	switch {
	case e.info.IsDir():
		return p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: e.name + "/", Mode: 0o755})
	case e.info.Mode().Type() == fs.ModeSymlink:
		return p.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: e.name, Linkname: e.target, Mode: 0o755})
	}
	return p.file(e)
}

// file writes a regular file. It reads the whole file first, so that the size in the archive is correct even if the file
// changes.
func (p *packer) file(e entry) error {
	f, why := p.open(e)
	if why != "" {
		p.scan.omit(e.name, why)
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// Data that is appended from now on is left out.
	var c content
	defer c.close()
	if err := c.read(io.LimitReader(f, info.Size())); err != nil {
		p.scan.omit(e.name, whyUnreadable+": "+reason(err))
		return nil
	}
	if p.left -= c.size; p.left < 0 {
		return fmt.Errorf("%w: its files grew beyond %d MiB while they were packed; share a smaller folder", ErrTooLarge, MaxBytes>>20)
	}
	h := tar.Header{Typeflag: tar.TypeReg, Name: e.name, Size: c.size, Mode: 0o644}
	if info.Mode()&0o100 != 0 {
		h.Mode = 0o755
	}
	if err := p.tar.WriteHeader(&h); err != nil {
		return err
	}
	return c.write(p.tar)
}

// open opens the file that was scanned, or returns why not. It does not open another file in its place, and does not
// block on a pipe.
func (p *packer) open(e entry) (f *os.File, problem string) {
	f, err := p.scan.root.OpenFile(e.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, why(err)
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && os.SameFile(info, e.info) {
		return f, ""
	}
	_ = f.Close()
	return nil, whyReplaced
}

// maxInMemory is the largest file that is copied to memory, in bytes.
const maxInMemory = 4 << 20

// A content is a copy of a file: in memory or, if it is large, in a temporary file.
type content struct {
	size   int64
	memory bytes.Buffer
	file   *os.File
}

func (c *content) read(r io.Reader) error {
	n, err := io.Copy(&c.memory, io.LimitReader(r, maxInMemory))
	if c.size = n; err != nil || n < maxInMemory {
		return err
	}
	c.file, err = os.CreateTemp("", "hookfabric-snapshot-*")
	if err != nil {
		return err
	}
	// An unlinked file is removed by a crash, too.
	_ = os.Remove(c.file.Name())
	n, err = io.Copy(c.file, r)
	c.size += n
	return err
}

func (c *content) write(w io.Writer) error {
	if _, err := c.memory.WriteTo(w); err != nil || c.file == nil {
		return err
	}
	if _, err := c.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(w, c.file)
	return err
}

func (c *content) close() {
	if c.file == nil {
		return
	}
	_ = c.file.Close()
	_ = os.Remove(c.file.Name())
}
