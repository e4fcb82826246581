package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// A Lookup finds programs: in Dirs, in order, and then names without a slash in Path.
type Lookup struct {
	Dirs []string
	// Path is the worker's PATH.
	Path string
	// Read is the extension of files that need not be executable, because an interpreter
	// reads them; empty: all files must be.
	Read string

	seen []string // unusable places, each with the reason
}

// A MissingError lists the places without the program.
type MissingError struct {
	Name string
	Seen []string // each with the reason
}

func (e *MissingError) Error() string {
	if len(e.Seen) == 0 {
		return fmt.Sprintf("there is no program %q: there is no folder to look in", e.Name)
	}
	return fmt.Sprintf("there is no program %q: looked at %s", e.Name, strings.Join(e.Seen, ", "))
}

// Find returns the absolute path of the file that name means. In Dirs the first file of
// that name counts, even if it cannot be run: a policy there must not be replaced by
// another file of the same name. If there is no file, the error is a [*MissingError].
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

// InPath searches Path as a shell does, and returns an empty string if name is not found.
// It skips relative entries, which would mean another program in every folder.
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

// Workdir returns the folder that processes run in: the first existing folder of Dirs, or
// an empty string.
func (l *Lookup) Workdir() string {
	for _, dir := range l.Dirs {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return ""
}

// usable returns what is wrong with the file of a handler.
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

// Executable reports whether the kernel lets this process run file.
func Executable(file string) error {
	_, err := exec.LookPath(file)
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return e.Err
	}
	return err
}

// Absolute makes folders independent of the worker's current folder.
func Absolute(dirs []string) []string {
	out := make([]string, 0, len(dirs))
	for _, dir := range dirs {
		if abs, err := filepath.Abs(dir); err == nil && dir != "" {
			out = append(out, abs)
		}
	}
	return out
}

// Environ selects the variables of a process from the worker's environment, name=value
// pairs: PATH, HOME, LANG, and those in names.
func Environ(all, names []string) ([]string, error) {
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return nil, fmt.Errorf("env: %q is not a variable name; write names only, such as GITHUB_TOKEN; the worker's environment has the values", name)
		}
	}
	var env []string
	for _, kv := range all {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "PATH", "HOME", "LANG":
		default:
			if !slices.Contains(names, name) {
				continue
			}
		}
		env = append(env, kv)
	}
	return env, nil
}

// Value returns the value of name in env; empty if it is not set.
func Value(env []string, name string) string {
	for _, kv := range env {
		if n, value, _ := strings.Cut(kv, "="); n == name {
			return value
		}
	}
	return ""
}
