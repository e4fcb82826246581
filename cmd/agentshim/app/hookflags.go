package app

import (
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/session"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

// answerUsageError answers the runtime of a hook whose command line is wrong: it denies what can be denied,
// and lets a turn end. ok is false without a known runtime, or for generic, whose callers read the exit code.
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

func hookCommand(h *hook, code *int) *cobra.Command {
	c := &cobra.Command{
		Use:   "hook",
		Short: "Ask the fabric about one event: read the runtime's payload on stdin, write its answer to stdout",
		Long: "hook reads one payload of an agent runtime from stdin, asks the fabric, and writes the answer in the\n" +
			"runtime's own form to stdout. It always answers before --timeout. If the fabric does not answer, the\n" +
			"last known policy decides. If no policy is known, --unreachable decides.\n\n" +
			"'agentshim install' writes this command into the configuration of a runtime.\n" +
			"Each flag has an environment variable: --agent is HOOKFABRIC_AGENT.",
		Example: `  echo '{"hook_type":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}' | agentshim hook --runtime generic`,
		Args:    program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := h.check(); err != nil {
				return err
			}
			h.chooseDaemon(c.Flags())
			h.stdin, h.stdout, h.stderr = c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()
			*code = h.run(c.Context())
			return nil
		},
	}
	h.flags(c)
	program.Completes(c, "runtime", dialect.Names()...)
	return c
}

func (h *hook) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&h.Runtime, "runtime", "", "the agent's `RUNTIME`: "+strings.Join(dialect.Names(), ", "))
	f.StringVar(&h.event, "event", "", "`NAME` of the event, as the runtime or the fabric calls it; default: the name in the payload")
	f.StringVar(&h.Agent, "agent", "", "the agent's `ID`; default: the id in the payload, else <runtime>-<session id>")
	f.StringVar(&h.EventID, "event-id", "", "the event's id, a `UUID`; repeat the id of an earlier attempt that got no answer; default: a new id")
	h.link.flags(f, "the working folder (cwd) of the event")
	f.DurationVar(&h.timeout, "timeout", 60*time.Second, "the runtime's timeout for this hook, such as 30s; agentshim answers earlier")
	unreachableFlag(c, &h.Unreachable, "deny or allow tool calls and prompts when the fabric does not answer and no policy is known; default: allow, or deny with --managed")
	f.BoolVar(&h.managed, "managed", false, "for installations that users cannot change: read only HOOKFABRIC_AGENT from the environment, and use only the daemon at --socket; default: off")
	program.Seal(f, "managed", "agent")
	socketFlag(f, &h.socket, byItself)
	f.BoolVar(&h.start, "start", false, "start a daemon for later calls if none runs; that daemon ends after 30m without a call; default: off")
}

// check rejects flag values that cannot work, and fills in defaults.
func (h *hook) check() (err error) {
	if h.Runtime == "" {
		return program.UsageError("--runtime is missing; write --runtime generic")
	}
	if h.Dialect, err = dialect.For(h.Runtime); err != nil {
		return program.UsageError("%w", err)
	}
	if h.event != "" {
		if h.Moment, err = dialect.Find(h.Dialect, h.event); err != nil {
			return program.UsageError("--event: %w", err)
		}
	}
	if err := checkUnreachable(&h.Unreachable, h.managed); err != nil {
		return err
	}
	if err := session.CheckID(h.EventID); err != nil {
		return program.UsageError("--event-id: %w", err)
	}
	if h.timeout <= 0 {
		return program.UsageError("--timeout is %s; write a positive duration such as 30s", h.timeout)
	}
	return nil
}

// chooseDaemon sets the daemon and its fabric, unless the command line names a fabric.
func (h *hook) chooseDaemon(f *pflag.FlagSet) {
	h.resolve(f)
	if program.Explicit(f, "nats") || program.Explicit(f, "creds") || program.ExplicitTLS(f) {
		return
	}
	if h.managed && !program.Explicit(f, "socket") {
		return // the agent could run a daemon of its own at the default path
	}
	h.daemon = daemon.Place{State: h.state, At: h.socket}.Socket()
	if !h.unnamed {
		h.natsWanted = h.nats
	}
	h.credsWanted = absolute(h.creds)
}

// absolute returns path as another process understands it; empty stays empty.
func absolute(path string) string {
	if path == "" {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
