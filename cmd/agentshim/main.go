// Command agentshim runs beside an agent. It asks the fabric about the agent's tool calls,
// in the protocol of the agent's runtime.
package main

import (
	"os"

	"github.com/hookfabric/hookfabric/cmd/agentshim/app"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
)

func main() { os.Exit(run()) }

func run() int {
	if code, ok := app.Quick(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); ok {
		return code
	}
	ctx, cancel := program.Context()
	defer cancel()
	return app.Main(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
