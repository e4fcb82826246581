package app

import (
	"io"

	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// answerUsageError answers the runtime of a hook whose command line is wrong, in the runtime's own
// form: it denies what can be denied, and lets a turn end, which exit code 2 would not. The error is
// on stderr already. ok is false if the command line names no known runtime, or the runtime generic,
// whose callers read the exit code.
func answerUsageError(args []string, stdout io.Writer) (code int, ok bool) {
	if !isHook(args) {
		return 0, false
	}
	runtime, event := namedRuntime(args[1:])
	d, err := dialect.For(runtime)
	if err != nil || runtime == "generic" {
		return 0, false
	}
	m, err := dialect.Find(d, event)
	if err != nil {
		m = dialect.Moment{} // any event
	}
	a := d.Refuse(m, "the command line of this agentshim hook is wrong, so agentshim did not ask the fabric; read its error on stderr, or run 'agentshim doctor'")
	if _, err := stdout.Write(a.Stdout); err != nil {
		return program.Failed, true
	}
	return a.Exit, true
}

// namedRuntime returns the values of --runtime and --event, and ignores all other flags.
func namedRuntime(args []string) (runtime, event string) {
	f := pflag.NewFlagSet("hook", pflag.ContinueOnError)
	f.ParseErrorsAllowlist.UnknownFlags = true
	f.SetOutput(io.Discard)
	f.StringVar(&runtime, "runtime", "", "")
	f.StringVar(&event, "event", "", "")
	_ = f.Parse(args)              // what it read before an error counts
	_ = program.FromEnvironment(f) // strings have no errors
	return runtime, event
}
