// Command fetch fetches released coding agents for the tests that run them:
//
//	go run ./cmd/e2e/clients/fetch [claude] [codex] [gemini]
//
// It prints the names of the available clients, separated by commas, or none. Without arguments it fetches all clients
// and the Claude Agent SDK. Without npm or its registry it reports that, and does not fail.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/hookfabric/hookfabric/cmd/e2e/clients/released"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	cancel()
	if err != nil {
		fmt.Fprintf(os.Stderr, "fetch: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string, stdout, stderr io.Writer) error {
	wanted := append(released.All(), released.AgentSDK())
	if len(names) > 0 {
		var err error
		if wanted, err = released.Named(names...); err != nil {
			return err
		}
	}
	var there []string
	for _, c := range wanted {
		err := c.Fetch(ctx)
		if errors.Is(err, released.ErrUnavailable) {
			fmt.Fprintf(stderr, "SKIPPED: %s: %v\n", c.Name, err)
			continue
		}
		if err != nil {
			return err
		}
		if !c.Library {
			there = append(there, c.Name)
		}
	}
	if len(there) == 0 {
		there = []string{"none"}
	}
	_, err := fmt.Fprintln(stdout, strings.Join(there, ","))
	return err
}
