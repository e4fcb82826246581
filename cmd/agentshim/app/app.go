// Package app has the commands of agentshim as functions. The command hook always answers
// its runtime in time.
package app

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// service is what the shim calls itself to those who follow traces.
const service = "agentshim"

// Main runs the shim's command line and returns the exit code. [Quick] goes
// before it where the program has little time.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	code := program.Done
	root := &cobra.Command{
		Use:   "agentshim",
		Short: "Ask the hook fabric about the tool calls of an AI agent",
		Long: "agentshim connects AI agents to the hook fabric. Agent runtimes such as Claude Code start 'agentshim hook'\n" +
			"at each event, and obey its answer. Connect a runtime with 'agentshim install', check it with 'agentshim doctor'.\n\n" +
			"Each flag has an environment variable: --nats is HOOKFABRIC_NATS. A flag on the command line wins.",
		Example: "  agentshim install claude --project\n  agentshim doctor --runtime claude",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return program.UsageError("unknown command %q; see '%s --help'", args[0], c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.AddCommand(hookCommand(&code), serveCommand(), mcpCommand(&code), drainCommand(), renderCommand(), installCommand(), uninstallCommand(), doctorCommand(&code), policyCommand(), &cobra.Command{
		Use: "version", Short: "Print the version", Args: program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "hookfabric agentshim "+schema.Release)
			return err
		},
	})
	root.SetOut(stdout)                         // before the completion command takes it
	root.InitDefaultCompletionCmd("completion") // [program.Run] would hide it
	failed := program.Run(ctx, root, args, stdin, stdout, stderr)
	if failed == program.Usage {
		if code, ok := misused(args, stdout); ok {
			return code
		}
	}
	if failed != program.Done {
		return failed
	}
	return code
}

func hookCommand(code *int) *cobra.Command {
	var h hook
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
			h.ask(c.Flags())
			h.stdin, h.stdout, h.stderr = c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()
			*code = h.run(c.Context())
			return nil
		},
	}
	h.flags(c.Flags())
	c.Flags().Lookup("runtime").Usage += ": " + strings.Join(dialect.Names(), ", ")
	program.Completes(c, "runtime", dialect.Names()...)
	program.Completes(c, "unreachable", decide.UnreachableDeny, decide.UnreachableAllow)
	return c
}
