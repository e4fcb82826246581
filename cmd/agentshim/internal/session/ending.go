package session

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// mostTurns is how often in a row an agent is kept going at the end of its turn by
// runtimes that have no bound of their own.
const mostTurns = 8

// counts reports whether it is counted how often the agent is kept going. An
// agent's own loop counts by itself.
func counts(c *dialect.Call) bool { return (c.Moment.Endless || c.Moment.Turns > 0) && !c.Faulty }

// pairOfEnd is the key of the count of repetitions in the store, which has one item for each.
func pairOfEnd(c *dialect.Call) string { return "end of turn/" + c.Event.SessionID + "/" + c.Subagent }

// spent says why the end of the turn cannot be put off once more; nil: it can be.
// It is found out before anybody is asked, so that what waits for the agent is not
// taken along with an answer that ends the turn, but stays for the next one.
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
		x.Store.RemoveInjections(agent, pair) // the turn before ended by the runtime's own bound
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
	x.Store.RemoveInjections(agent, pair) // it only had to be known that it can be counted
	return nil
}

// once stands for one time that the end of a turn was put off.
func once() []schema.Injection { return []schema.Injection{{Strategy: schema.UserMessage}} }

// bound lets a turn end that hooks would put off for ever: some runtimes do so as
// often as they are told, and every time costs a call of the model. What waited
// for the agent and came all the same is not held back: it comes once only.
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
			_ = x.Store.AddInjections(c.Event.AgentID, pairOfEnd(c), once()) // if not, it is seen the next time
		}
		return
	case !c.Moment.Endless:
		return // the runtime sees to it
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
