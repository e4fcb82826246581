package session

import (
	"fmt"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// recall adds the flags that hooks set earlier to an event without flags. An agent's own loop keeps
// its flags by itself.
func (x *Exchange) recall(c *dialect.Call) {
	if x.Store == nil || c.Event.Flags != nil || c.Moment.Can[dialect.Effects] == dialect.Native {
		return
	}
	c.Event.Flags = x.Store.Flags(c.Event.AgentID, c.Event.SessionID)
}

// flag stores the flags that hooks set, for later events.
func (x *Exchange) flag(c *dialect.Call, said *schema.Verdict) {
	if c.Moment.Can[dialect.Effects] == dialect.Native {
		return
	}
	set := dialect.Flags(said)
	if len(set) == 0 {
		return
	}
	if x.Store == nil {
		fmt.Fprintf(x.Stderr, "agentshim: dropped the flags that hooks set at %s, because there is no state folder; name one with --state\n", c.Moment.Name)
	} else if err := x.Store.SetFlags(c.Event.AgentID, c.Event.SessionID, set); err != nil {
		fmt.Fprintf(x.Stderr, "agentshim: storing the flags that hooks set at %s: %v\n", c.Moment.Name, err)
	}
}
