package app

import (
	"io"
	"os"
	"strings"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// misused answers a hook whose command line is faulty as its runtime understands
// it: what can be refused is refused, and a turn that ends is not begun anew for
// ever, as exit code 2 would. What is wrong was said on stderr already. ok is false
// where nobody knows which runtime it is, or a person or a script reads the exit code.
func misused(args []string, stdout io.Writer) (code int, ok bool) {
	if len(args) == 0 || args[0] != "hook" {
		return 0, false
	}
	d, err := dialect.For(word(args, "runtime"))
	if err != nil || word(args, "runtime") == "generic" {
		return 0, false
	}
	m, err := dialect.Find(d, word(args, "event"))
	if err != nil {
		m = dialect.Moment{} // it may be any
	}
	a := d.Refuse(m, "the command line of this agentshim hook is wrong, so agentshim did not ask the fabric; read its error on stderr, or run 'agentshim doctor'")
	if _, err := stdout.Write(a.Stdout); err != nil {
		return program.Failed, true
	}
	return a.Exit, true
}

// word is what a command line says of a flag, however faulty the rest is.
func word(args []string, flag string) string {
	for i, a := range args {
		if v, ok := strings.CutPrefix(a, "--"+flag+"="); ok {
			return v
		}
		if a == "--"+flag && i+1 < len(args) {
			return args[i+1]
		}
	}
	return os.Getenv(program.EnvPrefix + strings.ToUpper(flag))
}
