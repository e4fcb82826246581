package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/schema"
)

// A call is one of a turn's tool calls, on its way to its outcome.
type call struct {
	run   *run
	call  schema.ToolCall
	aside aside
	// notes stand with the result, whatever it is.
	notes   []string
	outcome schema.ToolOutcome
	// told are the events whose injections stand in notes and aside.
	told []string
	// restart is the verdict that asked for a new turn.
	restart *schema.Verdict
	end     *ending
}

// errTurn is why calls of a turn are ended that other calls of it ended.
var errTurn = errors.New("another call of the turn ended it")

// tools makes the calls of a turn. What v injected, and what hooks of the calls add,
// comes after all results.
func (r *run) tools(ctx context.Context, wanted []schema.ToolCall, v *schema.Verdict) *ending {
	calls := make([]*call, len(wanted))
	turn, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	slots := make(chan struct{}, r.loop.opt.Parallel)
	var all sync.WaitGroup
	for i, w := range wanted {
		c := &call{run: r, call: w}
		calls[i] = c
		slots <- struct{}{} // in order: with one slot the calls are made one after the other
		all.Go(func() {
			defer func() { <-slots }()
			c.make(ctx, turn)
			if c.end != nil || c.restart != nil {
				stop(errTurn)
			}
		})
	}
	all.Wait()
	for _, c := range calls {
		out := c.outcome
		r.loop.talk.add(nil, schema.Message{Role: schema.RoleTool, Result: &out})
	}
	r.inject(nil, v)
	for _, c := range calls {
		r.loop.talk.add(nil, c.aside.messages...)
		for _, event := range c.told {
			r.loop.waiting.stands(event)
		}
	}
	r.last = "the model asked for tools last"
	return r.turned(calls)
}

// turned is what the calls of a turn come to together: the first end in the order of
// the calls, and otherwise the first restart.
func (r *run) turned(calls []*call) *ending {
	for _, c := range calls {
		if c.end != nil {
			return c.end
		}
	}
	for _, c := range calls {
		if c.restart != nil {
			r.restart(c.restart)
			r.inject(nil, c.restart)
			break
		}
	}
	return nil
}

// make makes the call. ctx is the query's, turn ends with the turn. Hooks of a call
// that has begun are asked on the query's: what ran is told.
func (c *call) make(ctx, turn context.Context) {
	defer func() {
		if p := recover(); p != nil {
			c.end = &ending{how: Failed, err: fmt.Errorf("the query panicked: %v", p)}
			c.outcome = schema.ToolOutcome{ID: c.call.ID, Name: c.call.Name, Error: fmt.Sprintf("the query panicked: %v", p)}
			c.told = nil
		}
	}()
	if turn.Err() != nil {
		c.skipped(ctx, turn)
		return
	}
	if len(c.call.Input) == 0 || c.call.Input.Kind() == 'n' {
		c.call.Input = jsontext.Value("{}")
	}
	if err := render.CallError(&c.call); err != nil {
		// Nothing will run, so that there is nothing to ask about before.
		c.outcome = schema.ToolOutcome{ID: c.call.ID, Name: c.call.Name, Error: err.Error()}
		c.after(ctx)
		return
	}
	if !c.before(ctx, turn) {
		return
	}
	if turn.Err() != nil {
		c.skipped(ctx, turn)
		return
	}
	c.run.say(Chunk{Kind: ToolCallChunk, Text: c.call.Name, Call: new(c.call)})
	c.outcome = c.runTool(turn)
	c.after(ctx)
}

// skipped is a call of a turn that ended before it was made.
func (c *call) skipped(ctx, turn context.Context) {
	c.refused("was not made", context.Cause(turn).Error())
	if ctx.Err() != nil {
		c.end = cancelled(ctx)
	}
}

// runTool runs the tool that the call names.
func (c *call) runTool(ctx context.Context) schema.ToolOutcome {
	t := c.run.loop.tools[c.call.Name]
	if t == nil {
		return schema.ToolOutcome{ID: c.call.ID, Name: c.call.Name, Error: fmt.Sprintf("there is no tool %q", c.call.Name)}
	}
	return t.run(ctx, c.call)
}

// before asks about the call, and reports whether it is to be made.
func (c *call) before(ctx, turn context.Context) bool {
	m := c.run.at(schema.PreToolUse, c.call, &c.aside)
	e := c.run.judge(ctx, m)
	v := &m.verdict
	if e == nil {
		c.inject(v)
	}
	switch {
	case e != nil:
		c.end = e
		c.refused("did not run, since the query ends", e.err.Error())
	case v.Restart != nil:
		c.restart = v
		c.refused("did not run, since the turn restarts", v.Restart.Reason)
	case v.Decision == schema.Deny:
		c.refused("was denied and did not run", v.Reason)
	case v.Decision == schema.Ask && !c.approved(turn, m):
		c.refused("did not run, since no person approved it", v.Reason)
	case v.Decision == schema.Stop:
		c.outcome = c.given(m)
		c.shown()
	default:
		c.call, _ = m.seen().(schema.ToolCall)
		return true
	}
	return false
}

// approved asks a person, for as long as the turn lasts.
func (c *call) approved(ctx context.Context, m *moment) bool {
	approve := c.run.loop.opt.Approve
	if approve == nil {
		return false
	}
	asked, _ := m.seen().(schema.ToolCall)
	yes, err := guarded(ctx, "Approve", func(ctx context.Context) (bool, error) { return approve(ctx, asked, m.verdict.Reason) })
	if err != nil {
		c.run.note([]string{fmt.Sprintf("asking for approval of %s failed: %v", asked.Name, err)})
	}
	return yes && err == nil
}

// refused is the outcome of a call that is not made, in words for the model.
func (c *call) refused(how, why string) {
	c.outcome = schema.ToolOutcome{ID: c.call.ID, Name: c.call.Name,
		Error: "The call " + how + ": " + first(why, "no reason was given"), Notes: c.notes}
	c.shown()
}

// given is the outcome that a hook gave in place of the tool.
func (c *call) given(m *moment) schema.ToolOutcome {
	out, typed := m.stop.(schema.ToolOutcome)
	if !typed {
		out = schema.ToolOutcome{Output: m.verdict.Value}
	}
	out.ID, out.Name = c.call.ID, c.call.Name
	out.Notes = append(out.Notes, c.notes...)
	return out
}

// after asks about what came of the call: exactly one of the two events, also when
// the query was cancelled meanwhile, since the tool ran.
func (c *call) after(ctx context.Context) {
	t := schema.PostToolUse
	if c.outcome.Error != "" {
		t = schema.ToolError
	}
	asking, cancel := outlive(ctx, c.run.loop.opt.EndTimeout)
	defer cancel()
	m := c.run.at(t, c.outcome, &c.aside)
	m.event.ToolName, m.event.ToolUseID = c.call.Name, c.call.ID
	if c.call.Input.Kind() == '{' {
		m.event.ToolInput = c.call.Input
		m.event.ToolKind, m.event.ToolArgs = schema.ToolFacts(m.event.Runtime, c.call.Name, c.call.Input)
	}
	c.end = c.run.judge(asking, m)
	v := &m.verdict
	c.outcome, _ = m.seen().(schema.ToolOutcome)
	if v.Decision == schema.Deny {
		c.notes = append(c.notes, "Feedback on this result: "+first(v.Reason, "a hook objects to it, without a reason"))
	}
	if v.Decision == schema.Fail {
		c.notes = append(c.notes, "This result ended the query: "+first(v.Reason, "a hook says so, without a reason"))
	}
	if c.end == nil {
		c.inject(v)
	}
	if v.Restart != nil && c.end == nil {
		c.restart = v
	}
	if ctx.Err() != nil && c.end == nil {
		c.end = cancelled(ctx)
	}
	c.outcome.Notes = append(c.outcome.Notes, c.notes...)
	c.shown()
}

// inject hands over injections: with the result, or after all of the turn's. Those of a
// restart belong into the new turn.
func (c *call) inject(v *schema.Verdict) {
	if v.Restart != nil {
		return
	}
	own := *v
	own.Injections = nil
	for i := range v.Injections {
		in := &v.Injections[i]
		if in.Strategy == schema.UserMessage {
			own.Injections = append(own.Injections, *in)
		} else if first(in.Content) != "" {
			c.notes = append(c.notes, in.Content)
			c.run.sayInjection(in)
		}
	}
	c.run.inject(&c.aside, &own)
	c.told = append(c.told, v.EventID)
}

// shown shows what came of the call.
func (c *call) shown() {
	out := cloneOutcome(c.outcome)
	c.run.say(Chunk{Kind: ToolResultChunk, Text: first(out.Error, string(out.Output)), Result: &out})
}
