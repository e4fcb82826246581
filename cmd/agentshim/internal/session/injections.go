package session

import (
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// postpone stores injections that the runtime cannot take before a tool call, for the event after the call.
// They wait for the agent's next event instead if the call is denied, because there is no event after it.
// The same applies if the call has no id and a hook rewrote its input, because the shim cannot match the
// event after it.
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

// takesPostponed reports whether postponed injections can be delivered at an event: not before a tool call,
// which may be denied, nor at the end of a turn, which must not continue for them.
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

// addPostponed puts the postponed injections for the call, and for any event of the agent, before those of
// v. It returns a function that removes them from the store; call it when the runtime has the answer.
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
