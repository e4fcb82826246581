// Package app is the shim as a function: the process that an agent's runtime
// calls, and that always answers in time.
package app

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/agentshim/dialect"
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
		Short: "Ask the fabric about an agent's tool calls",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return program.UsageError("unknown command %q; see '%s --help'", args[0], c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.AddCommand(hookCommand(&code), serveCommand(), mcpCommand(&code), drainCommand(), renderCommand(), installCommand(), uninstallCommand(), doctorCommand(&code), &cobra.Command{
		Use: "version", Short: "Print the version", Args: program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "hookfabric agentshim "+schema.Release)
			return err
		},
	})
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
		Short: "Ask about one event: the runtime's payload on stdin, its answer on stdout",
		Long: "hook reads what an agent's runtime says about one moment, asks the fabric, and answers as the\n" +
			"runtime expects. It always answers before --timeout: when nobody judged, the\npolicy that was known last decides, and --unreachable where none was.\n\n" +
			"Every flag has an environment variable: --agent is HOOKFABRIC_AGENT.",
		Args: program.NoArgs,
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
	return c
}
