package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// An Omission is an entry of a folder that its snapshot leaves out.
type Omission struct {
	// Path is its path in the folder.
	Path string
	// Why is the end of a sentence that begins with the path.
	Why string
}

func (o Omission) String() string { return o.Path + " " + o.Why }

// The reasons for omissions.
const (
	whyOthers     = "holds what others shared"
	whyOutside    = "is a link that leads out of the folder"
	whyNoFile     = "is neither a file nor a folder nor a link"
	whyVanished   = "vanished while the folder was packed"
	whyReplaced   = "was replaced while the folder was packed"
	whyUnreadable = "cannot be read"
)

// An entry is an entry of a folder.
type entry struct {
	name string
	info fs.FileInfo
	// target is the target of a link.
	target string
}

// A scan lists a folder before anything is written.
type scan struct {
	root *os.Root
	// abs are the absolute names of the folder, with which targets of links may begin.
	abs     []string
	entries []entry
	left    []Omission
	files   int
	bytes   int64
	// shares are the sums of the entries, by the first name of their paths.
	shares map[string]share
}

type share struct {
	files int
	bytes int64
}

func newScan(root *os.Root, dir string) *scan {
	s := &scan{root: root, shares: map[string]share{}}
	if abs, err := filepath.Abs(dir); err == nil {
		s.abs = append(s.abs, abs)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		if real, err = filepath.Abs(real); err == nil {
			s.abs = append(s.abs, real)
		}
	}
	return s
}

func (s *scan) omit(name, why string) { s.left = append(s.left, Omission{Path: name, Why: why}) }

// folder scans the folder dir of the root.
func (s *scan) folder(ctx context.Context, dir string) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	names, err := s.names(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := s.look(ctx, path.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// names lists a folder, sorted. An unreadable folder is left out.
func (s *scan) names(dir string) ([]string, error) {
	f, err := s.root.Open(dir)
	if err != nil {
		return nil, s.gone(dir, err)
	}
	defer f.Close()
	// Read one more than the limit, so that an excess is noticed.
	names, err := f.Readdirnames(MaxFiles + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, s.gone(dir, err)
	}
	slices.Sort(names)
	return names, nil
}

// gone records an unreadable entry. For the folder itself it returns an error.
func (s *scan) gone(name string, err error) error {
	if name == "." {
		return err
	}
	s.omit(name, why(err))
	return nil
}

func why(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return whyVanished
	}
	return whyUnreadable + ": " + reason(err)
}

// reason returns err without the system call and the path.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	return err.Error()
}

// look scans one entry, and everything below it.
func (s *scan) look(ctx context.Context, name string) error {
	if deep(name) {
		return errDeep(name)
	}
	if err := s.count(name); err != nil {
		return err
	}
	info, err := s.root.Lstat(name)
	if err != nil {
		return s.gone(name, err)
	}
	e := entry{name: name, info: info}
	switch mode := info.Mode(); {
	case mode.IsDir() && path.Base(name) == Others:
		s.omit(name, whyOthers)
		return nil
	case mode.IsDir():
		s.entries = append(s.entries, e)
		return s.folder(ctx, name)
	case mode.IsRegular():
		s.entries = append(s.entries, e)
		s.weigh(name, info.Size())
		return nil
	case mode.Type() == fs.ModeSymlink:
		return s.link(e)
	}
	s.omit(name, whyNoFile)
	return nil
}

// link adds a link if its target is in the folder.
func (s *scan) link(e entry) error {
	target, err := s.root.Readlink(e.name)
	if err != nil {
		return s.gone(e.name, err)
	}
	short, ok := s.relative(e.name, target)
	if !ok {
		s.omit(e.name, whyOutside)
		return nil
	}
	e.target = short
	s.entries = append(s.entries, e)
	return nil
}

// relative returns the target of the link called name, if it is in the folder.
func (s *scan) relative(name, target string) (string, bool) {
	followed, err := s.root.Stat(name)
	if path.IsAbs(target) {
		if target = s.shorten(name, target); target == "" {
			return "", false
		}
		followed, err = s.root.Stat(path.Join(path.Dir(name), target))
	}
	short, ok := inside(name, target)
	if !ok {
		return "", false
	}
	if err != nil {
		// A missing target is not followed.
		return short, errors.Is(err, fs.ErrNotExist) && short == target
	}
	// The short form must mean the same: a/../b is b only if a is no link.
	direct, err := s.root.Stat(path.Join(path.Dir(name), short))
	return short, err == nil && os.SameFile(followed, direct)
}

// shorten returns an absolute path as a path from the link called name; empty: it is not in the folder.
func (s *scan) shorten(name, target string) string {
	for _, abs := range s.abs {
		if to, ok := below(abs, target); ok {
			if rel, err := filepath.Rel(path.Dir(name), to); err == nil {
				return filepath.ToSlash(rel)
			}
		}
	}
	return ""
}

// below returns the path of target in the folder abs, if it is in it.
func below(abs, target string) (string, bool) {
	rel, err := filepath.Rel(abs, target)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", false
	}
	return rel, true
}

// count counts an entry, also if it will be left out.
func (s *scan) count(name string) error {
	first, _, _ := strings.Cut(name, "/")
	sh := s.shares[first]
	sh.files++
	s.shares[first] = sh
	if s.files++; s.files <= MaxFiles {
		return nil
	}
	most := s.most(func(a, b share) int { return cmp.Compare(a.files, b.files) })
	return fmt.Errorf("%w: the folder has more than %d files and folders, most of the first ones in %q; share a smaller folder, or take that out of it",
		ErrTooLarge, MaxFiles, most)
}

// weigh adds the bytes of a file.
func (s *scan) weigh(name string, size int64) {
	first, _, _ := strings.Cut(name, "/")
	sh := s.shares[first]
	sh.bytes += size
	s.shares[first] = sh
	s.bytes += size
}

// check returns an error if the scanned folder exceeds a limit.
func (s *scan) check() error {
	if s.bytes <= MaxBytes {
		return nil
	}
	most := s.most(func(a, b share) int { return cmp.Compare(a.bytes, b.bytes) })
	return fmt.Errorf("%w: the files of the folder have %d MiB together, %d MiB of them in %q, and may have %d; share a smaller folder, or take that out of it",
		ErrTooLarge, s.bytes>>20, s.shares[most].bytes>>20, most, MaxBytes>>20)
}

// most returns the first name with the largest share.
func (s *scan) most(compare func(a, b share) int) string {
	return slices.MaxFunc(slices.Sorted(maps.Keys(s.shares)), func(a, b string) int {
		return compare(s.shares[a], s.shares[b])
	})
}
