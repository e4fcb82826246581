package command

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

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
