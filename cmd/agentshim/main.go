// Command agentshim runs beside an agent. It asks the fabric about the agent's tool calls,
// in the protocol of the agent's runtime.
package main

import (
	"os"

	"github.com/hookfabric/hookfabric/cmd/agentshim/app"
)

func main() { os.Exit(app.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
