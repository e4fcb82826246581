package client_test

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// How do I stop all tool calls of some agents at once?
func Example_howDoIFreezeAgents() {
	ctx, c, url, stop := connectAndLocate(`hooks: {}`)
	defer stop()
	nc, err := nats.Connect(url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nc.Close()

	// The command for this is: broker freeze --agent 'ci-*' --reason "wrong deployment"
	subject, err := bus.ControlSubject(schema.VerbFreeze, "")
	if err != nil {
		fmt.Println(err)
		return
	}
	var answer schema.FreezeAnswer
	request := schema.FreezeRequest{Agents: "ci-*", Reason: "wrong deployment"}
	if err := bus.Ask(ctx, nc, subject, request, &answer); err != nil {
		fmt.Println(err)
		return
	}

	for _, agent := range []string{"ci-7", "agent1"} {
		v, err := c.Ask(ctx, &schema.Event{HookType: schema.PreToolUse, AgentID: agent, ToolName: "Bash"})
		if err != nil {
			fmt.Println(err)
			return
		}
		refused, _, _ := strings.Cut(v.Reason, " at ") // the time follows
		fmt.Println(agent, v.Decision, v.Frozen, refused)
	}
	// Output:
	// ci-7 deny true TOOL `Bash` REFUSED: the tool calls of agents "ci-*" were frozen
	// agent1 continue false
}
