// Package e2e_test runs the commands as processes. The test binary is all of them, and also a NATS server and
// a worker of a user. Its name selects the program.
//
// The tests wait for the output or answers of processes, never for a fixed time. Tests that take longer or
// need root run only with HOOKFABRIC_LONG set.
package e2e_test

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/hookfabric/hookfabric/bus/bustest"
	shim "github.com/hookfabric/hookfabric/cmd/agentshim/app"
	broker "github.com/hookfabric/hookfabric/cmd/broker/app"
	hookworker "github.com/hookfabric/hookfabric/cmd/hookworker/app"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/cmd/internal/runners"
)

func TestMain(m *testing.M) {
	bustest.Overlap()
	testscript.Main(m, map[string]func(){
		"agentshim":   command(shim.Main),
		"broker":      command(broker.Main),
		"hookworker":  command(hookworker.Main),
		"nats-server": command(natsServer),
		"gohooks":     command(goHooks),
		"mcpserver":   mcpServer,
	})
}

// A mainFunc is a command as a function.
type mainFunc func(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int

// command is a process's life, as the commands' own main functions have it.
func command(run mainFunc) func() {
	return func() {
		runners.Watchdog(os.Args)
		holdLifeline()
		program.Tune()
		ctx, cancel := program.Context()
		code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
		cancel()
		os.Exit(code)
	}
}

// long reports whether the tests may take their time.
func long() bool { return os.Getenv("HOOKFABRIC_LONG") != "" }
