// Package app is the shim as a function: the process that an agent's runtime
// calls, and that always answers in time.
package app

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// Main runs the shim's command line and returns the exit code.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	code := program.Done
	root := &cobra.Command{
		Use:   "agentshim",
		Short: "Ask the fabric about an agent's tool calls",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return program.UsageError("unknown command %q; see '%s --help'", args[0], c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.AddCommand(hookCommand(&code), drainCommand(), &cobra.Command{
		Use: "version", Short: "Print the version", Args: program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "hookfabric agentshim "+schema.Release)
			return err
		},
	})
	if failed := program.Run(ctx, root, args, stdin, stdout, stderr); failed != program.Done {
		return failed
	}
	return code
}

func hookCommand(code *int) *cobra.Command {
	var h hook
	c := &cobra.Command{
		Use:   "hook",
		Short: "Ask about one event: the runtime's payload on stdin, its answer on stdout",
		Long: "hook reads what an agent's runtime says about one moment, asks the fabric, and answers as the\n" +
			"runtime expects. It always answers before --timeout: when nobody judged, --unreachable decides.\n\n" +
			"Every flag has an environment variable: --agent is HOOKFABRIC_AGENT.",
		Args: program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := h.check(); err != nil {
				return err
			}
			h.stdin, h.stdout, h.stderr = c.InOrStdin(), c.OutOrStdout(), c.ErrOrStderr()
			*code = h.run(c.Context())
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&h.runtime, "runtime", "", "the agent's runtime: generic")
	f.StringVar(&h.event, "event", "", "the event, where the payload does not name it")
	f.StringVar(&h.agent, "agent", "", "the agent's id; default: what the payload says, else <runtime>-<session id>")
	h.flags(c, "the event's cwd")
	f.DurationVar(&h.timeout, "timeout", 60*time.Second, "the runtime's own timeout; the answer comes before it")
	f.StringVar(&h.unreachable, "unreachable", "allow", "what to do with tool calls and prompts that nobody judged: deny or allow")
	return c
}
