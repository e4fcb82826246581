package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/schema"
)

// How do I decide by myself when the fabric does not answer in time?
func Example_howDoIStopACallAfterATimeout() {
	dir, err := os.MkdirTemp("", "hookfabric-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	server, err := server.Start(context.Background(), server.Options{Dir: dir}) // a NATS server without a broker
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close(context.Background())
	c, err := client.Connect(context.Background(), client.Options{InProcess: server, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err = c.Ask(ctx, &schema.Event{HookType: schema.PreToolUse, AgentID: "agent1", ToolName: "Bash"})
	if errors.Is(err, client.ErrUnreachable) || errors.Is(err, client.ErrUnanswered) {
		fmt.Println("no verdict: the tool does not run")
	}
	// Output:
	// no verdict: the tool does not run
}
