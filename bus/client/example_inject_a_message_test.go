package client_test

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// How do I inject a message into an agent's next tool result?
func Example_howDoIInjectAMessage() {
	ctx, c, url, stop := connectAndLocate(`presets: [delivery]`)
	defer stop()
	nc, err := nats.Connect(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nc.Close()

	// An operator queues the message. The command for this is: broker inject --agent agent1 "…"
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

	// The agent's next event delivers it.
	v, err := c.Ask(ctx, &schema.Event{
		HookType: schema.PostToolUse, AgentID: "agent1", ToolName: "Bash", ToolOutput: jsontext.Value(`"ok"`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, in := range v.Injections {
		fmt.Println(in.Strategy, in.Source)
		fmt.Println(in.Content)
	}
	c.Handed(v.EventID) // after the agent has read the message
	// Output:
	// tool_result human
	// [Human Input]: The test server is down.
}
