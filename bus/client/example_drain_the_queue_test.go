package client_test

import (
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// How do I read an agent's waiting messages without an event?
func Example_howDoIDrainTheQueue() {
	ctx, c, url, stop := connectAndLocate(`presets: [delivery]`)
	defer stop()
	nc, err := nats.Connect(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nc.Close()
	subject, err := bus.ControlSubject(schema.VerbInject, "agent1")
	if err != nil {
		fmt.Println(err)
		return
	}
	var receipt schema.Receipt
	if err := bus.Ask(ctx, nc, subject, schema.InjectRequest{Content: "The test server is down."}, &receipt); err != nil {
		fmt.Println(err)
		return
	}

	waiting, err := c.Drain(ctx, "agent1", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(waiting.Content)
	fmt.Println(waiting.Remaining, "more")
	if err := c.Ack(ctx, "agent1", waiting.EventID); err != nil { // after the agent has read the message
		fmt.Println(err)
	}
	// Output:
	// [Human Input]: The test server is down.
	// 0 more
}
