// Package program is what the commands share: how a process starts, what its
// flags mean, and how it ends.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The exit codes of every command but `agentshim hook`, which obeys its runtime.
const (
	Done   = 0
	Failed = 1
	Usage  = 2
)

// EnvPrefix begins the name of every environment variable.
const EnvPrefix = "HOOKFABRIC_"

// errUsage marks errors in how a command was called.
var errUsage = errors.New("usage")

// UsageError is an error in how a command was called: it ends with exit code 2.
func UsageError(format string, args ...any) error {
	return fmt.Errorf("%w%w", silent{errUsage}, fmt.Errorf(format, args...))
}

// silent is an error that is found by errors.Is and says nothing.
type silent struct{ error }

func (silent) Error() string   { return "" }
func (s silent) Unwrap() error { return s.error }

// Run runs a command tree and returns its exit code. Errors are one sentence
// on stderr.
func Run(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return UsageError("%w; see '%s --help'", err, c.CommandPath())
	})
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if err := fromEnvironment(c.Flags()); err != nil {
			return err
		}
		return onlyOne(c)
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		return Done
	}
	fmt.Fprintf(stderr, "%s: %v\n", root.Name(), err)
	if errors.Is(err, errUsage) || strings.HasPrefix(err.Error(), "unknown command") {
		return Usage
	}
	return Failed
}

// fromEnvironment gives every flag that was not set its environment variable:
// --ready-pools is HOOKFABRIC_READY_POOLS.
func fromEnvironment(flags *pflag.FlagSet) error {
	var errs []error
	explicit := given(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		name := EnvPrefix + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		v, ok := os.LookupEnv(name)
		if f.Changed || !ok || v == "" || f.Name == "help" || f.Name == "version" {
			return
		}
		if slices.ContainsFunc(f.Annotations[apart], func(other string) bool { return slices.Contains(explicit, other) }) {
			return
		}
		if err := flags.Set(f.Name, v); err != nil {
			errs = append(errs, UsageError("%s: %w", name, err))
		}
	})
	return errors.Join(errs...)
}

// NoArgs refuses arguments with a sentence.
func NoArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UsageError("unknown argument %q; see '%s --help'", args[0], c.CommandPath())
	}
	return nil
}

// Context ends at the first interrupt or termination, so that the program can
// finish what is under way; a second signal ends the process at once.
func Context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(130)
	}()
	return ctx, cancel
}

// memoryLimit is when the collector stops saving time and starts saving space.
const memoryLimit = 1 << 30

// Tune trades memory for time: most of what a call allocates dies with it. An
// operator's GOGC and GOMEMLIMIT win.
func Tune() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}

// Logger writes text to w at the level that HOOKFABRIC_LOG names.
func Logger(w io.Writer) (*slog.Logger, error) {
	level := slog.LevelInfo
	if v := os.Getenv(EnvPrefix + "LOG"); v != "" {
		if err := level.UnmarshalText([]byte(v)); err != nil {
			return nil, UsageError("%sLOG is %q; write debug, info, warn or error", EnvPrefix, v)
		}
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), nil
}
