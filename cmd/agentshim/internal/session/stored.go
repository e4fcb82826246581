package session

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// postpone stores injections that the runtime cannot take before a tool call, for the event after it. If the
// call is denied, or cannot be matched because a hook rewrote it, they wait for the agent's next event.
func (x *Exchange) postpone(c *dialect.Call, said *schema.Verdict, later []schema.Injection) {
	if len(later) == 0 {
		return
	}
	if x.Store == nil {
		fmt.Fprintf(x.Stderr, "agentshim: dropped the injections of hooks at %s: this runtime takes none there, and without --state agentshim cannot deliver them later\n", c.Moment.Name)
		return
	}
	pair := c.Pair
	if pair == "" || c.Event.HookType.Blocks(said.Decision) || said.UpdatedInput != nil && !c.ByID {
		pair = nextEvent(c)
	}
	if err := x.Store.AddInjections(c.Event.AgentID, pair, later); err != nil {
		fmt.Fprintf(x.Stderr, "agentshim: storing the injections of hooks at %s for the next event: %v\n", c.Moment.Name, err)
	}
}

// takesPostponed reports whether an event takes postponed injections: not before a tool call, which may be
// denied, nor at the end of a turn, which must not continue for them.
func takesPostponed(t schema.EventType) bool {
	switch t {
	case schema.PostToolUse, schema.ToolError, schema.UserPromptSubmit, schema.BeforeLLMCall:
		return true
	}
	return false
}

// nextEvent identifies the next event of the agent, or of its subagent.
func nextEvent(c *dialect.Call) string {
	if c.Subagent != "" {
		return "subagent/" + c.Subagent
	}
	return ""
}

// addPostponed puts the postponed injections before those of v. told removes them from the store.
func (x *Exchange) addPostponed(c *dialect.Call, v *schema.Verdict) (told func()) {
	if x.Store == nil || !takesPostponed(c.Event.HookType) || c.Faulty || c.Moment.Can[dialect.Inject] != dialect.Native {
		return nil
	}
	if !c.Event.HookType.HasTool() && c.Event.HookType.Blocks(v.Decision) {
		return nil // the model does not read them with a denial
	}
	pairs := []string{nextEvent(c)}
	if c.Pair != "" {
		pairs = []string{c.Pair, nextEvent(c)}
	}
	var stored []schema.Injection
	for _, p := range pairs {
		stored = append(stored, x.Store.Injections(c.Event.AgentID, p)...)
	}
	if len(stored) == 0 {
		return nil
	}
	v.Injections = slices.Concat(stored, v.Injections)
	return func() {
		for _, p := range pairs {
			x.Store.RemoveInjections(c.Event.AgentID, p)
		}
	}
}

// recall adds the flags that hooks set earlier to an event. An agent's own loop keeps its own.
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

// belong sets the session of a subagent's event to that of its agent, whose hooks and limits apply. The store
// has the agent's session of each subagent, for subagents of subagents.
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

// mostTurns is how often in a row hooks may put off the end of a turn in runtimes without a limit.
const mostTurns = 8

// counts reports whether the shim counts how often hooks keep the agent going.
func counts(c *dialect.Call) bool { return (c.Moment.Endless || c.Moment.Turns > 0) && !c.Faulty }

// pairOfEnd returns the key under which the store counts repetitions, with one item for each.
func pairOfEnd(c *dialect.Call) string { return "end of turn/" + c.Event.SessionID + "/" + c.Subagent }

// spent returns why hooks cannot put off the end of the turn again; nil: they can. It is checked before the
// fabric is asked, so that waiting items are not lost with an answer that ends the turn.
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

// bound ends a turn that hooks would put off without an end, because each time costs a call of the model. An
// injection that waited still keeps the agent going: it comes once only.
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
