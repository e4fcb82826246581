// Package app has the commands of agentshim. The command hook always answers its runtime in time.
package app

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

const service = "agentshim"

// Run is [Main] for this process, with two savings for `agentshim hook`: it listens for signals late, and runs
// on one processor, where no goroutine waits for a new thread. The process ends after it.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if isHook(args) {
		runtime.GOMAXPROCS(1)
		return run(context.Background(), &hook{process: true}, args, stdin, stdout, stderr)
	}
	ctx, cancel := program.Context()
	defer cancel()
	return Main(ctx, args, stdin, stdout, stderr)
}

func isHook(args []string) bool { return len(args) > 0 && args[0] == "hook" }

// Main runs a command line and returns the exit code.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return run(ctx, new(hook), args, stdin, stdout, stderr)
}

func run(ctx context.Context, h *hook, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	code := program.Done
	root := rootCommand()
	root.AddCommand(hookCommand(h, &code))
	if isHook(args) {
		root.CompletionOptions.DisableDefaultCmd = true // a hook has no time for the other commands
	} else {
		root.AddCommand(serveCommand(), mcpCommand(&code), drainCommand(), renderCommand(), installCommand(), uninstallCommand(),
			doctorCommand(&code), policyCommand(), versionCommand())
		root.SetOut(stdout)                         // before the completion command takes it
		root.InitDefaultCompletionCmd("completion") // [program.Run] would hide it
	}
	failed := program.Run(ctx, root, args, stdin, stdout, stderr)
	if failed == program.Usage {
		if code, ok := answerUsageError(args, stdout); ok {
			return code
		}
	}
	if failed != program.Done {
		return failed
	}
	return code
}

func rootCommand() *cobra.Command {
	return &cobra.Command{
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
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: program.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(c.OutOrStdout(), "hookfabric agentshim "+schema.Release)
			return err
		},
	}
}
