// Command loadtest measures hookfabric on this machine and checks every answer. Without a
// subcommand it runs for less than a minute, prints tables and writes a page.
//
// Some commands measure one thing. bench compares a call with a bare request-reply and with
// webhooks, loop does the same for a whole query, and shim for `agentshim hook`. scale shows how
// the cost of a call grows, and model calculates the needs of larger fleets. state measures the
// message queue, record the record of verdicts, notice the detection of lost processes, and
// freeze the time until a freeze has reached every shim.
//
// Other commands run many agents at the same time: fleet at one rate, saturate up to the highest
// rate, overload at twice that rate, chaos with random faults, soak for a long time. run reads
// such a scenario from a file. crash and cluster kill processes and check that nothing is lost.
// compare and show read the reports of earlier runs.
//
// The program starts the processes that it needs from its own executable, on free ports of the
// loopback interface, and ends them. Only shim also needs the go command.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:])) }

// run is main with an exit code: 0 if all checks and budgets held, 1 if one did not or the run
// failed, 2 for wrong usage.
func run(args []string) int {
	// Collect garbage rarely, as all programs of the fabric do, because events are
	// short-lived. The memory limit applies if they are not.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(1 << 30)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program at once. A sender that signals a process and its
	// group, as timeout does, means one signal.
	context.AfterFunc(ctx, func() { time.AfterFunc(time.Second, stop) })
	root := commands()
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		if _, said := errors.AsType[ended](err); !said {
			fmt.Fprintln(os.Stderr, "loadtest:", err)
		}
		return exitCode(err)
	}
	return 0
}
