package session

import (
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// keep keeps what hooks inject before a tool call for the moment after it,
// where the runtime cannot be told before. There is none after a call that is
// refused, and a rewritten one without an id cannot be told from others: then it
// is for the agent's next moment.
func (x *Exchange) keep(c *dialect.Call, said *schema.Verdict, later []schema.Injection) {
	if len(later) == 0 {
		return
	}
	if x.Shelf == nil {
		fmt.Fprintf(x.Stderr, "agentshim: dropped the injections of hooks at %s: this runtime takes none there, and without --state agentshim cannot deliver them later\n", c.Moment.Name)
		return
	}
	pair := c.Pair
	if pair == "" || c.Event.HookType.Blocks(said.Decision) || said.UpdatedInput != nil && !c.ByID {
		pair = next(c)
	}
	if err := x.Shelf.Put(c.Event.AgentID, pair, later); err != nil {
		fmt.Fprintf(x.Stderr, "agentshim: storing the injections of hooks at %s for the next event: %v\n", c.Moment.Name, err)
	}
}

// tells reports whether what was kept can be told at an event. Before a tool it
// might stand beside a refusal, and the end of a turn is not put off for it.
func tells(t schema.EventType) bool {
	switch t {
	case schema.PostToolUse, schema.ToolError, schema.UserPromptSubmit, schema.BeforeLLMCall:
		return true
	}
	return false
}

// next stands for the agent's next moment, or that of its subagent.
func next(c *dialect.Call) string {
	if c.Subagent != "" {
		return "subagent/" + c.Subagent
	}
	return ""
}

// take puts what was kept for the call, and for any moment of the agent, before
// what v injects. It returns how that is taken away once the runtime has it.
func (x *Exchange) take(c *dialect.Call, v *schema.Verdict) (told func()) {
	if x.Shelf == nil || !tells(c.Event.HookType) || c.Faulty || c.Moment.Can[dialect.Inject] != dialect.Native {
		return nil
	}
	if !c.Event.HookType.HasTool() && c.Event.HookType.Blocks(v.Decision) {
		return nil // nobody reads it beside that
	}
	pairs := []string{next(c)}
	if c.Pair != "" {
		pairs = []string{c.Pair, next(c)}
	}
	var kept []schema.Injection
	for _, p := range pairs {
		kept = append(kept, x.Shelf.Look(c.Event.AgentID, p)...)
	}
	if len(kept) == 0 {
		return nil
	}
	v.Injections = slices.Concat(kept, v.Injections)
	return func() {
		for _, p := range pairs {
			x.Shelf.Clear(c.Event.AgentID, p)
		}
	}
}
