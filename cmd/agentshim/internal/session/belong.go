package session

import (
	"fmt"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// belong makes the event of a subagent that has a session of its own one of the agent
// that it works for: what holds for that one holds for all that it has others do. The
// shelf keeps which session each belongs to, for subagents of subagents.
func (x *Exchange) belong(c *dialect.Call) {
	if c.Parent == "" {
		return
	}
	c.Event.SessionID = c.Parent
	if x.Shelf == nil {
		return
	}
	family := x.Runtime + ".subagents"
	if known := x.Shelf.Look(family, c.Parent); len(known) > 0 {
		c.Event.SessionID = known[0].Content
	}
	if c.Subagent == "" || len(x.Shelf.Look(family, c.Subagent)) > 0 {
		return
	}
	if err := x.Shelf.Put(family, c.Subagent, []schema.Injection{{Content: c.Event.SessionID}}); err != nil {
		fmt.Fprintf(x.Stderr, "agentshim: storing the parent of the subagent %.64q: %v; agentshim treats its own subagents as agents\n", c.Subagent, err)
	}
}
