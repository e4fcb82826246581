// Command loadtest measures the fabric on the machine it runs on: what a call
// costs next to a bare request-reply and to what people use instead (bench),
// how throughput grows with workers (scale), what the queue of injections takes
// (state), what a hook costs that starts once per call (shim), what the events of a
// whole query cost (loop), and whether anything is lost when processes are killed
// (crash). It needs nothing but itself (shim: and the go command): it runs as many processes of its own executable as
// it needs, on free ports of the loopback interface, and ends them all.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:])) }

// run is main with an exit code: 0 all is within budget, 1 it is not or
// something went wrong, 2 the arguments are.
func run(args []string) int {
	// All programs of the fabric run like this: few collections, because
	// events are short-lived, and a limit for the day they are not.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(1 << 30)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := commands()
	root.SetArgs(args)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "loadtest:", err)
		return exitCode(err)
	}
	return 0
}
