// Command loadtest measures the fabric on the machine it runs on, and holds it to
// what it promises while it does. Without a name it runs for less than a minute and
// shows what matters most: a table, a picture and a page.
//
// Its runs have names: what a call costs next to a bare request-reply and to what
// people use instead (bench), how that grows (scale) and what it comes to where nobody can
// measure it (model), what the queue of injections
// takes (state), what a hook costs that starts once per call (shim), what the events
// of a whole query cost (loop), how long nobody notices that somebody is lost (notice), how long it takes
// until a freeze has reached everybody (freeze), what it costs that
// verdicts are written down (record).
// Many agents use tools at once (fleet), up to what the fabric keeps up with (saturate)
// and beyond (overload), while things go wrong at random (chaos), or for long (soak).
// Processes are killed, and nothing may be lost (crash). Brokers that are one are killed, stopped and
// cut off from each other (cluster). Scenarios are files of YAML
// (run). What two runs showed is compared (compare), and shown again (show).
//
// It needs nothing but itself (shim: and the go command): it runs as many processes of its own executable as
// it needs, on free ports of the loopback interface, and ends them all.
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

// run is main with an exit code: 0 all is within budget, 1 it is not, or
// something went wrong or was interrupted, 2 the arguments are.
func run(args []string) int {
	// All programs of the fabric run like this: few collections, because
	// events are short-lived, and a limit for the day they are not.
	debug.SetGCPercent(400)
	debug.SetMemoryLimit(1 << 30)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the program at once. Who sends one to a process and to its
	// group, as timeout does, means one.
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
