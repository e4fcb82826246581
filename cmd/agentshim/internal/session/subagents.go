package session

import (
	"fmt"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// belong sets the session of a subagent's event to the session of its agent, because the agent's hooks and limits apply
// to it. The store has the agent's session of each subagent, for subagents of subagents.
func (x *Exchange) belong(c *dialect.Call) {
	if c.Parent == "" {
		return
	}
	c.Event.SessionID = c.Parent
	if x.Store == nil {
		return
	}
	family := x.Runtime + ".subagents"
	if known := x.Store.Injections(family, c.Parent); len(known) > 0 {
		c.Event.SessionID = known[0].Content
	}
	if c.Subagent == "" || len(x.Store.Injections(family, c.Subagent)) > 0 {
		return
	}
	if err := x.Store.AddInjections(family, c.Subagent, []schema.Injection{{Content: c.Event.SessionID}}); err != nil {
		fmt.Fprintf(x.Stderr, "agentshim: storing the parent of the subagent %.64q: %v; agentshim treats its own subagents as agents\n", c.Subagent, err)
	}
}
