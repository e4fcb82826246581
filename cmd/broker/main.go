// Command broker answers the hook events of agents. Alone it is the whole fabric on one
// machine:
//
//	broker --config hooks.yaml
//
// 'broker --help' lists its flags and the commands of operators.
package main

import (
	"os"

	"github.com/hookfabric/hookfabric/cmd/broker/app"
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
