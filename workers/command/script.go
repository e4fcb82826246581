package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers/internal/child"
)

// headSize is how much of a program is read to find out what it is. Kernels read no more
// of a first line.
const headSize = 256

// launch returns the command line that starts file. It detects faults when the hook
// loads, because at a call a failure policy might ignore them.
func (l *lookup) launch(file string) ([]string, error) {
	head, err := readHead(file)
	switch {
	case filepath.Ext(file) == pythonScript && child.Executable(file) != nil:
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w; give the worker permission to read it", file, err)
		}
		return l.under("python3", file)
	case err != nil:
		return []string{file}, nil //nolint:nilerr // it may be run but not read
	case len(head) == 0:
		return nil, fmt.Errorf("%s is empty and would let every call pass; write the hook into it", file)
	case bytes.HasPrefix(head, []byte("#!")):
		return []string{file}, l.interpreter(file, head[2:])
	case bytes.IndexByte(head, 0) >= 0:
		return []string{file}, nil // machine code
	case filepath.Ext(file) == pythonScript:
		return l.under("python3", file)
	}
	return []string{"/bin/sh", file}, nil // a script without a first line for the kernel, which shells run themselves
}

// under returns the command line in which interpreter reads file.
func (l *lookup) under(interpreter, file string) ([]string, error) {
	in := child.Lookup{Path: l.Path}
	found := in.InPath(interpreter)
	if found == "" {
		return nil, fmt.Errorf("%s runs under %s, which is not in PATH (%s); install it there", file, interpreter, l.Path)
	}
	return []string{found, file}, nil
}

// interpreter checks the program in a script's first line.
func (l *lookup) interpreter(file string, head []byte) error {
	line, _, _ := strings.Cut(string(head), "\n")
	if strings.HasSuffix(line, "\r") {
		return fmt.Errorf("%s has Windows line ends, so its first line names no program; save it with Unix line ends", file)
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return fmt.Errorf("%s has an empty #! line; name the interpreter in it", file)
	}
	if err := child.Executable(words[0]); err != nil {
		return fmt.Errorf("the first line of %s names %s, which does not run: %w; install it, or change the line", file, words[0], err)
	}
	if filepath.Base(words[0]) == "env" && len(words) == 2 {
		_, err := l.under(words[1], file)
		return err
	}
	return nil
}

func readHead(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, headSize))
}

// pythonScript is the extension of programs that python3 reads if they cannot be run
// themselves.
const pythonScript = ".py"

// lookup finds programs and their command lines.
type lookup struct{ child.Lookup }

func newLookup(dirs []string, path string) *lookup {
	return &lookup{child.Lookup{Dirs: dirs, Path: path, Read: pythonScript}}
}

// argv returns the command line of h.
func (l *lookup) argv(h schema.Hook) ([]string, error) {
	for _, s := range append([]string{h.Handler}, h.Args...) {
		if strings.ContainsRune(s, 0) {
			return nil, fmt.Errorf("the command line of %q contains a NUL byte; remove it", h.Handler)
		}
	}
	switch {
	case strings.TrimSpace(h.Handler) == "":
		return nil, errors.New("the hook names no program; write the program as its handler")
	case h.Shell:
		return shellArgv(h)
	}
	file, err := l.Find(h.Handler)
	if err != nil {
		return nil, hinted(err)
	}
	argv, err := l.launch(file)
	if err != nil {
		return nil, err
	}
	return append(argv, h.Args...), nil
}

// shellArgv returns the command line of a handler that is a line of shell. Arguments
// follow as separate words, which need no quotes.
func shellArgv(h schema.Hook) ([]string, error) {
	if err := child.Executable("/bin/sh"); err != nil {
		return nil, fmt.Errorf("there is no shell at /bin/sh (%w); use a machine that has one, or remove shell: true", err)
	}
	if len(h.Args) == 0 {
		return []string{"/bin/sh", "-c", h.Handler}, nil
	}
	return append([]string{"/bin/sh", "-c", h.Handler + ` "$@"`, "sh"}, h.Args...), nil
}

// hinted adds a hint to the error about a missing program.
func hinted(err error) error {
	missing, ok := errors.AsType[*child.MissingError](err)
	switch {
	case !ok:
		return err
	case strings.ContainsAny(missing.Name, " \t|&;<>"):
		return fmt.Errorf("%w; write its arguments as args: [...], or set shell: true so that a shell reads the line", err)
	}
	return fmt.Errorf("%w; put it there, or write its absolute path", err)
}
