package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/hookfabric/hookfabric/bus/chown"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install/edit"
)

type file struct {
	// path is the file itself, after following links; asked is the path that led to it.
	path    string
	asked   string
	there   bool
	content []byte
	info    fs.FileInfo
}

// read reads a file, which need not exist.
func read(path string) (f file, err error) {
	err = asOwner(path, func() (err error) {
		f, err = readHere(path)
		return err
	})
	f.asked = path
	return f, err
}

func readHere(path string) (file, error) {
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return file{}, fmt.Errorf("%s is a link to a missing file; create that file, or remove the link", path)
		}
		return file{path: path}, nil
	}
	if err != nil {
		return file{}, err
	}
	info, err := os.Stat(real)
	if err != nil {
		return file{}, err
	}
	if !info.Mode().IsRegular() { // opening a pipe would block
		return file{}, fmt.Errorf("%s is not a regular file; remove it, and install again", real)
	}
	in, err := os.Open(real)
	if err != nil {
		return file{}, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, edit.Max+1))
	if err != nil {
		return file{}, fmt.Errorf("reading %s: %w", real, err)
	}
	if len(data) > edit.Max {
		return file{}, fmt.Errorf("%s has more than %d bytes, the limit for a configuration; name the right file", real, edit.Max)
	}
	return file{path: real, there: true, content: data, info: info}, nil
}

// become returns the change that gives f another content.
func (f *file) become(after []byte, s Scope) Change {
	c := Change{Path: f.path, asked: f.asked, Before: f.content, After: after, there: f.there, info: f.info, mode: 0o600, dir: 0o700,
		shown: func(text []byte) []byte { return text }}
	if s != User { // other users must be able to read it
		c.mode, c.dir = 0o644, 0o755
	}
	if f.there {
		c.mode = f.info.Mode().Perm()
	}
	return c
}

// keptMark is part of the names of backup copies, which no runtime takes for its files.
const keptMark = ".before-agentshim-"

// kept returns the newest backup copy and its name; empty: there is no copy.
func (f *file) kept() (content []byte, name string) {
	dir, base := filepath.Split(f.path)
	entries, _ := os.ReadDir(filepath.Clean(dir))
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), base+keptMark) && e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return nil, ""
	}
	name = filepath.Join(dir, slices.Max(names))
	k, err := read(name)
	if err != nil || !k.there {
		return nil, ""
	}
	return k.content, name
}

// A Change is the change of one file.
type Change struct {
	// Path is the file itself, after following links.
	Path string
	// Before and After are the contents; After is nil if the change removes the file.
	Before, After []byte

	asked     string // the path that led to the file
	there     bool
	info      fs.FileInfo
	mode, dir fs.FileMode
	// backup: the change keeps a copy of the old file. drop is a copy that it makes obsolete.
	backup  bool
	drop    string
	summary string
	// shown returns the part of the content that may appear in a diff.
	shown func(text []byte) []byte
}

func (c *Change) changes() bool {
	return c.After == nil && c.there || c.After != nil && (!c.there || !bytes.Equal(c.Before, c.After))
}

func (c *Change) diff() string {
	if !c.changes() {
		return ""
	}
	before, after := c.Path, c.Path
	if !c.there {
		before = "/dev/null"
	}
	if c.After == nil {
		after = "/dev/null"
	}
	text := diff.Diff(before, c.shown(c.Before), after, c.shown(c.After))
	// A user may have added a name and a password to the URL of a hook by hand.
	return regexp.MustCompile(`//[^/@\s"']+@`).ReplaceAllString(string(text), "//***@")
}

func (c *Change) apply(now time.Time) (said string, err error) {
	err = asOwner(c.asked, func() (err error) {
		said, err = c.carryOut(now)
		return err
	})
	return said, err
}

func (c *Change) carryOut(now time.Time) (said string, err error) {
	if !c.changes() {
		return c.Path + " is up to date; agentshim changed nothing", nil
	}
	if err := c.untouched(); err != nil {
		return "", err
	}
	kept := ""
	said = c.Path + ": " + c.summary
	if c.backup && c.there {
		if kept, err = c.keep(now); err != nil {
			return "", fmt.Errorf("agentshim could not copy the old file, so it changed nothing: %w", err)
		}
		said += "; the old file is now " + filepath.Base(kept)
	}
	if c.there && links(c.info) > 1 {
		said += "; the file has hard links, and its other names still show the old file"
	}
	if c.After == nil {
		return said + "; agentshim removed the file, because nothing else was in it", os.Remove(c.Path)
	}
	if err := folders(filepath.Dir(c.Path), c.dir); err != nil {
		return "", err
	}
	if err := c.replace(); err != nil {
		if kept != "" { // the file itself is unchanged
			_ = os.Remove(kept)
		}
		return "", fmt.Errorf("agentshim changed nothing: %w", err)
	}
	if c.drop != "" {
		said += "; the file is the same as before the installation"
		if err := os.Remove(c.drop); err != nil {
			return "", err
		}
	}
	return said, nil
}

// folders creates a folder and the missing ones above it, with the owner of the lowest existing one.
func folders(path string, mode fs.FileMode) error {
	if _, err := os.Stat(path); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := folders(filepath.Dir(path), mode); err != nil {
		return err
	}
	if err := os.Mkdir(path, mode); err != nil {
		return err
	}
	f, err := chown.OpenFolder(path)
	if err != nil {
		return err
	}
	// The umask may have removed permissions that other users need.
	return errors.Join(chown.LikeFolder(f), f.Chmod(mode), f.Close())
}

// untouched returns an error if another program changed the file since agentshim read it.
func (c *Change) untouched() error {
	f, err := read(c.Path)
	if err != nil || f.path != c.Path || f.there != c.there || !bytes.Equal(f.content, c.Before) {
		return errors.Join(errChanged, err)
	}
	return nil
}

// keep writes a copy of the old content beside the file, atomically and under a new name.
func (c *Change) keep(now time.Time) (string, error) {
	stamp := c.Path + keptMark + now.UTC().Format("20060102T150405Z")
	name := stamp
	for n := 2; ; n++ {
		there, err := os.ReadFile(name)
		if err == nil && bytes.Equal(there, c.Before) {
			return name, nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if n > maxKept {
			return "", fmt.Errorf("there are already %d copies from this second: %w", maxKept, err)
		}
		name = fmt.Sprintf("%s-%d", stamp, n)
	}
	return name, c.put(c.Before, name, func(temp string) error { return os.Rename(temp, name) })
}

// replace writes the new content atomically, unless another program, such as the runtime itself, has changed
// the file since agentshim read it.
func (c *Change) replace() error {
	return c.put(c.After, c.Path, func(temp string) error {
		if err := c.untouched(); err != nil {
			return err
		}
		return c.trade(temp)
	})
}

// trade checks the file that it replaced, and restores it if another program has changed it.
func (c *Change) trade(temp string) error {
	if !c.there || exchange(temp, c.Path) != nil {
		return os.Rename(temp, c.Path)
	}
	if was, err := os.ReadFile(temp); err == nil && bytes.Equal(was, c.Before) {
		return os.Remove(temp)
	}
	// The file that comes back is agentshim's, or a still newer one.
	err := exchange(temp, c.Path)
	if newer, rerr := os.ReadFile(temp); err == nil && rerr == nil && !bytes.Equal(newer, c.After) {
		err = os.Rename(temp, c.Path)
	}
	return errors.Join(errChanged, err)
}

var errChanged = errors.New("another program changed the file during the installation; install again")

// own gives a file the owner of the one that it replaces, or of the folder.
func own(f *os.File, old fs.FileInfo) error {
	if old == nil {
		return chown.LikeFolder(f)
	}
	return chown.Like(f, old)
}

// put writes a temporary file beside the target, and calls place when it is complete.
func (c *Change) put(content []byte, path string, place func(temp string) error) error {
	litter(filepath.Dir(path))
	f, err := os.CreateTemp(filepath.Dir(path), tempForm)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, own(f, c.info), f.Chmod(c.mode), f.Sync(), f.Close())
	if err == nil {
		err = place(f.Name())
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

const (
	tempForm = ".agentshim-*.tmp" // the pattern of the names of temporary files
	maxKept  = 100                // limits the copies of one second
)

// litter removes the temporary files of killed installations.
func litter(dir string) {
	all, _ := os.ReadDir(dir) // creating the file reports an unreadable folder
	for _, e := range all {
		info, err := e.Info()
		if ours, _ := filepath.Match(tempForm, e.Name()); ours && err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}
