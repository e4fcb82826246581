package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hookfabric/hookfabric/schema"
)

// lookup finds programs: in dirs, in order, and names without a slash after
// that in the worker's PATH.
type lookup struct {
	dirs []string
	path string
	seen []string // the places that were of no use, each with why
}

// argv is the command line that h stands for.
func (l *lookup) argv(h schema.Hook) ([]string, error) {
	for _, s := range append([]string{h.Handler}, h.Args...) {
		if strings.ContainsRune(s, 0) {
			return nil, fmt.Errorf("the command line of %q has a NUL byte in it; take that out", h.Handler)
		}
	}
	switch {
	case strings.TrimSpace(h.Handler) == "":
		return nil, errors.New("the hook names no program; write one as its handler")
	case h.Shell:
		return shellArgv(h)
	}
	file, err := l.find(h.Handler)
	if err != nil {
		return nil, err
	}
	argv, err := l.launch(file)
	if err != nil {
		return nil, err
	}
	return append(argv, h.Args...), nil
}

// shellArgv is the command line of a handler that is a line of shell. Its
// arguments come after it as words of their own, which nobody has to quote.
func shellArgv(h schema.Hook) ([]string, error) {
	if err := executable("/bin/sh"); err != nil {
		return nil, fmt.Errorf("there is no shell at /bin/sh (%w); use a machine that has one, or take out shell: true", err)
	}
	if len(h.Args) == 0 {
		return []string{"/bin/sh", "-c", h.Handler}, nil
	}
	return append([]string{"/bin/sh", "-c", h.Handler + ` "$@"`, "sh"}, h.Args...), nil
}

// find returns the absolute path of the file that name means. In dirs the
// first file of that name decides, also if it can not be run: the policy that
// somebody put there must not be replaced by whatever else has its name.
func (l *lookup) find(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, usable(name)
	}
	for _, dir := range l.dirs {
		file := filepath.Join(dir, name)
		info, err := os.Stat(file)
		switch {
		case err != nil:
			l.reject(file, err)
		case info.IsDir():
			l.reject(file, syscall.EISDIR)
		default:
			return file, usable(file)
		}
	}
	if !strings.ContainsRune(name, '/') {
		if file := l.inPath(name); file != "" {
			return file, nil
		}
	}
	return "", l.missing(name)
}

// inPath looks through PATH as a shell does. A relative entry there would mean
// another program in every folder, so those are passed over.
func (l *lookup) inPath(name string) string {
	for _, dir := range filepath.SplitList(l.path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, name)
		err := executable(file)
		if err == nil {
			return file
		}
		l.reject(file, err)
	}
	return ""
}

func (l *lookup) reject(file string, err error) {
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

func (l *lookup) missing(name string) error {
	hint := "put it there, or write its absolute path"
	if strings.ContainsAny(name, " \t|&;<>") {
		hint = "write its arguments as args: [...], or shell: true to have a shell read the line"
	}
	if len(l.seen) == 0 {
		return fmt.Errorf("there is no program %q: there is no folder to look in; %s", name, hint)
	}
	return fmt.Errorf("there is no program %q: looked at %s; %s", name, strings.Join(l.seen, ", "), hint)
}

// workdir is the folder that programs run in: the first one of dirs that is
// there, else (empty) the worker's own.
func (l *lookup) workdir() string {
	for _, dir := range l.dirs {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return ""
}

// usable says what is wrong with the file that a handler names.
func usable(file string) error {
	err := executable(file)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no program at %s; put it there, or write where it is", file)
	case errors.Is(err, syscall.EISDIR):
		return fmt.Errorf("%s is a directory; write the program in it", file)
	case errors.Is(err, fs.ErrPermission) && filepath.Ext(file) == ".py":
		return nil // python3 reads it
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s is not executable; run chmod +x on it", file)
	}
	return fmt.Errorf("%s can not be run: %w", file, err)
}

// executable reports whether this process may run file, as the kernel judges.
func executable(file string) error {
	_, err := exec.LookPath(file)
	if e, ok := errors.AsType[*exec.Error](err); ok {
		return e.Err
	}
	return err
}

// absolute makes folders independent of where the worker was started.
func absolute(dirs []string) []string {
	out := make([]string, 0, len(dirs))
	for _, dir := range dirs {
		if abs, err := filepath.Abs(dir); err == nil && dir != "" {
			out = append(out, abs)
		}
	}
	return out
}
