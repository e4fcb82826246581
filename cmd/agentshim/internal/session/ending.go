package session

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// mostTurns is how often in a row hooks may keep an agent going at the end of its turn in runtimes
// without a limit of their own.
const mostTurns = 8

// counts reports whether the shim counts how often hooks keep the agent going. An agent's own loop
// counts by itself.
func counts(c *dialect.Call) bool { return (c.Moment.Endless || c.Moment.Turns > 0) && !c.Faulty }

// pairOfEnd returns the key under which the store counts repetitions, with one item for each.
func pairOfEnd(c *dialect.Call) string { return "end of turn/" + c.Event.SessionID + "/" + c.Subagent }

// spent returns why hooks cannot put off the end of the turn again; nil: they can. The exchange checks
// this before it asks the fabric. Items that wait for the agent then stay queued for its next turn,
// and are not lost with an answer that ends this one.
func (x *Exchange) spent(c *dialect.Call) error {
	switch {
	case !counts(c):
		return nil
	case x.Store == nil && (c.PutOff() || c.Moment.Unmarked):
		return errors.New("agentshim cannot count the repetitions without --state")
	case x.Store == nil:
		return nil
	}
	agent, pair := c.Event.AgentID, pairOfEnd(c)
	if !c.Moment.Endless && !c.PutOff() && !c.Moment.Unmarked {
		x.Store.RemoveInjections(agent, pair) // the runtime's own limit ended the previous turn
		return nil
	}
	n := len(x.Store.Injections(agent, pair))
	if n >= cmp.Or(c.Moment.Turns, mostTurns) {
		return fmt.Errorf("they already did so %d times in a row", n)
	}
	if n > 0 || !c.PutOff() && !c.Moment.Unmarked {
		return nil
	}
	if err := x.Store.AddInjections(agent, pair, once()); err != nil {
		return fmt.Errorf("counting the repetitions: %w", err)
	}
	x.Store.RemoveInjections(agent, pair) // this was only a test of the store
	return nil
}

// once returns the record of one time that hooks put off the end of a turn.
func once() []schema.Injection { return []schema.Injection{{Strategy: schema.UserMessage}} }

// bound ends a turn that hooks would put off without an end. Some runtimes have no limit, and each
// time costs a call of the model. An injection that waited for the agent still keeps the agent going,
// because it comes once only.
func (x *Exchange) bound(c *dialect.Call, said *schema.Verdict, spent error) {
	if !counts(c) {
		return
	}
	forget := func() {
		if x.Store != nil {
			x.Store.RemoveInjections(c.Event.AgentID, pairOfEnd(c))
		}
	}
	switch {
	case dialect.GoesOn(c, said) == "":
		forget()
		return
	case spent == nil:
		if x.Store != nil {
			_ = x.Store.AddInjections(c.Event.AgentID, pairOfEnd(c), once()) // an error shows at the next end
		}
		return
	case !c.Moment.Endless:
		return // the runtime enforces its own limit
	}
	fmt.Fprintf(x.Stderr, "agentshim: the agent's turn ends, although hooks want it to continue: %v\n", spent)
	if said.Decision == schema.Retry {
		said.Decision, said.Reason = schema.Continue, ""
	}
	said.Injections = slices.DeleteFunc(slices.Clone(said.Injections), func(in schema.Injection) bool { return !dialect.Waited(in) })
	if len(said.Injections) == 0 {
		forget()
	}
}
