package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// A Lookup finds programs: in Dirs, in order, and names without a slash after
// that in Path.
type Lookup struct {
	Dirs []string
	// Path is the worker's PATH.
	Path string
	// Read is the extension of files that need not be executable, because
	// another program reads them; empty: all must be.
	Read string

	seen []string // the places that were of no use, each with why
}

// A MissingError says where a program was looked for that is not there.
type MissingError struct {
	Name string
	Seen []string // each with why it was of no use
}

func (e *MissingError) Error() string {
	if len(e.Seen) == 0 {
		return fmt.Sprintf("there is no program %q: there is no folder to look in", e.Name)
	}
	return fmt.Sprintf("there is no program %q: looked at %s", e.Name, strings.Join(e.Seen, ", "))
}

// Find returns the absolute path of the file that name means. In Dirs the
// first file of that name decides, also if it cannot be run: the policy that
// somebody put there must not be replaced by whatever else has its name. A
// name that means no file is a [*MissingError].
func (l *Lookup) Find(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, l.usable(name)
	}
	for _, dir := range l.Dirs {
		file := filepath.Join(dir, name)
		info, err := os.Stat(file)
		switch {
		case err != nil:
			l.reject(file, err)
		case info.IsDir():
			l.reject(file, syscall.EISDIR)
		default:
			return file, l.usable(file)
		}
	}
	if !strings.ContainsRune(name, '/') {
		if file := l.InPath(name); file != "" {
			return file, nil
		}
	}
	return "", &MissingError{Name: name, Seen: l.seen}
}

// InPath looks through Path as a shell does, and returns nothing where name is
// not there. A relative entry would mean another program in every folder, so
// those are passed over.
func (l *Lookup) InPath(name string) string {
	for _, dir := range filepath.SplitList(l.Path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, name)
		err := Executable(file)
		if err == nil {
			return file
		}
		l.reject(file, err)
	}
	return ""
}

func (l *Lookup) reject(file string, err error) {
	why := err.Error()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		why = "not there"
	case errors.Is(err, syscall.EISDIR):
		why = "a directory"
	case errors.Is(err, fs.ErrPermission):
		why = "not executable"
	}
	l.seen = append(l.seen, fmt.Sprintf("%s (%s)", file, why))
}

// Workdir is the folder that processes run in: the first one of Dirs that is
// there, else nothing.
func (l *Lookup) Workdir() string {
	for _, dir := range l.Dirs {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return ""
}

// usable says what is wrong with the file that a handler names.
func (l *Lookup) usable(file string) error {
	err := Executable(file)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no program at %s; put it there, or correct the path", file)
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%s is a directory; write the path of the program in it", file)
	case errors.Is(err, fs.ErrPermission) && l.Read != "" && filepath.Ext(file) == l.Read:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s is not executable; run chmod +x on it", file)
	}
	return fmt.Errorf("starting %s: %w", file, err)
}

// Executable reports whether this process may run file, as the kernel judges.
func Executable(file string) error {
	_, err := exec.LookPath(file)
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return e.Err
	}
	return err
}

// Absolute makes folders independent of where the worker was started.
func Absolute(dirs []string) []string {
	out := make([]string, 0, len(dirs))
	for _, dir := range dirs {
		if abs, err := filepath.Abs(dir); err == nil && dir != "" {
			out = append(out, abs)
		}
	}
	return out
}
