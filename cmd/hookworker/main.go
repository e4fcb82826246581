// Command hookworker runs the hooks of worker pools.
package main

import (
	"os"

	"github.com/hookfabric/hookfabric/cmd/hookworker/app"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/cmd/internal/runners"
)

func main() {
	runners.Watchdog(os.Args)
	os.Exit(run())
}

func run() int {
	program.Tune()
	ctx, cancel := program.Context()
	defer cancel()
	return app.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
