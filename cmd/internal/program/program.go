// Package program has what all commands share: how a process starts, reads its flags and
// environment variables, and ends.
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
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// The exit codes of every command but `agentshim hook`, which obeys its runtime.
const (
	Done   = 0
	Failed = 1
	Usage  = 2
)

// EnvPrefix begins the name of every environment variable.
const EnvPrefix = "HOOKFABRIC_"

// PlainNATS reports whether HOOKFABRIC_PLAIN_NATS is true: broker and hookworker then use the client
// of nats.go without the fabric's own writer and time limits.
func PlainNATS() bool { return os.Getenv(EnvPrefix+"PLAIN_NATS") == "true" }

// errUsage marks errors in how a command was called.
var errUsage = errors.New("usage")

// UsageError is an error in how a command was called: it ends with exit code 2.
func UsageError(format string, args ...any) error {
	return fmt.Errorf("%w%w", silent{errUsage}, fmt.Errorf(format, args...))
}

// silent is an error for errors.Is with an empty message.
type silent struct{ error }

func (silent) Error() string   { return "" }
func (s silent) Unwrap() error { return s.error }

// Run runs a command tree and returns its exit code. It prints errors on stderr, which it makes a
// [Terminal], and indents their further lines.
func Run(ctx context.Context, root *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stderr = Terminal(stderr)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return UsageError("%w; see '%s --help'", err, c.CommandPath())
	})
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if err := FromEnvironment(c.Flags()); err != nil {
			return err
		}
		return onlyOne(c)
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		return Done
	}
	fmt.Fprintf(stderr, "%s: %s\n", root.Name(), strings.ReplaceAll(err.Error(), "\n", "\n  "))
	if errors.Is(err, errUsage) || strings.HasPrefix(err.Error(), "unknown command") {
		return Usage
	}
	return Failed
}

// NoArgs rejects arguments.
func NoArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return UsageError("unknown argument %q; see '%s --help'", args[0], c.CommandPath())
	}
	return nil
}

// Context returns a context that ends at the first interrupt or termination, so that the program can
// finish its work. A second signal ends the process at once.
func Context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	handleSignals(cancel)
	return ctx, cancel
}

// handleSignals calls cancel at the first signal, and ends the process at the second one.
func handleSignals(cancel context.CancelFunc) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(130)
	}()
}

// ContextAfter is Context for a process that usually ends within d. Handling signals needs a thread,
// which is started only after d. An earlier signal ends the process at once.
func ContextAfter(d time.Duration) (context.Context, context.CancelFunc) {
	return contextAfter(d, handleSignals)
}

func contextAfter(d time.Duration, handle func(context.CancelFunc)) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	late := time.AfterFunc(d, func() { handle(cancel) })
	return ctx, func() {
		late.Stop()
		cancel()
	}
}

// memoryLimit is the default of GOMEMLIMIT, in bytes.
const memoryLimit = 1 << 30

// Tune makes the garbage collector run less often, because most allocations die with their call. GOGC
// and GOMEMLIMIT of the environment win.
func Tune() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
}

// Logger returns a logger that writes text to w, at the level of HOOKFABRIC_LOG.
func Logger(w io.Writer) (*slog.Logger, error) {
	level := slog.LevelInfo
	if v := os.Getenv(EnvPrefix + "LOG"); v != "" {
		if err := level.UnmarshalText([]byte(v)); err != nil {
			return nil, UsageError("%sLOG is %q; use debug, info, warn or error", EnvPrefix, v)
		}
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), nil
}
