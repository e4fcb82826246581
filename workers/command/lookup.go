package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers/internal/child"
)

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
