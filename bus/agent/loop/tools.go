package loop

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus/agent/render"
	"github.com/hookfabric/hookfabric/schema"
)

// A call is one tool call of a turn, until it has its outcome.
type call struct {
	run   *run
	call  schema.ToolCall
	aside aside
	// notes are shown with the result.
	notes   []string
	outcome schema.ToolOutcome
	// delivered are the events whose injections are in notes and aside.
	delivered []string
	// restart is the verdict that asked for a restart.
	restart *schema.Verdict
	end     *ending
}

// errTurn is the cause when another call of the turn ends it.
var errTurn = errors.New("another call of the turn ended it")

// tools makes the calls of a turn. Injections of v, and messages that hooks of the calls
// add, follow all results.
func (r *run) tools(ctx context.Context, wanted []schema.ToolCall, v *schema.Verdict) *ending {
	calls := make([]*call, len(wanted))
	turn, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	slots := make(chan struct{}, r.loop.opt.Parallel)
	var all sync.WaitGroup
	for i, w := range wanted {
		c := &call{run: r, call: w}
		calls[i] = c
		slots <- struct{}{} // in order, so that with one slot the calls run one after the other
		all.Go(func() {
			defer func() { <-slots }()
			c.execute(ctx, turn)
			if c.end != nil || c.restart != nil {
				stop(errTurn)
			}
		})
	}
	all.Wait()
	for _, c := range calls {
		out := c.outcome
		r.loop.conversation.add(nil, schema.Message{Role: schema.RoleTool, Result: &out})
	}
	r.inject(nil, v)
	for _, c := range calls {
		r.loop.conversation.add(nil, c.aside.messages...)
		for _, event := range c.delivered {
			r.loop.unread.markAdded(event)
		}
	}
	r.last = "the model asked for tools last"
	return r.endOfTurn(calls)
}

// endOfTurn returns the first ending in the order of the calls. Without one it carries
// out the first restart.
func (r *run) endOfTurn(calls []*call) *ending {
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

// execute makes the call. ctx is the query's context, and turn ends with the turn. The
// hooks after a tool run on ctx, because they must run for every tool that ran.
func (c *call) execute(ctx, turn context.Context) {
	defer func() {
		if p := recover(); p != nil {
			c.end = &ending{how: Failed, err: fmt.Errorf("the query panicked: %v", p)}
			c.outcome = schema.ToolOutcome{ID: c.call.ID, Name: c.call.Name, Error: fmt.Sprintf("the query panicked: %v", p)}
			c.delivered = nil
		}
	}()
	if turn.Err() != nil {
		c.skip(ctx, turn)
		return
	}
	if len(c.call.Input) == 0 || c.call.Input.Kind() == 'n' {
		c.call.Input = jsontext.Value("{}")
	}
	if err := render.CallError(&c.call); err != nil {
		// The tool cannot run, so hooks before it are not asked.
		c.outcome = schema.ToolOutcome{ID: c.call.ID, Name: c.call.Name, Error: err.Error()}
		c.after(ctx)
		return
	}
	if !c.before(ctx, turn) {
		return
	}
	if turn.Err() != nil {
		c.skip(ctx, turn)
		return
	}
	c.run.say(Chunk{Kind: ToolCallChunk, Text: c.call.Name, Call: new(c.call)})
	c.outcome = c.runTool(turn)
	c.after(ctx)
}

// skip refuses a call because its turn has ended.
func (c *call) skip(ctx, turn context.Context) {
	c.refuse("was not made", context.Cause(turn).Error())
	if ctx.Err() != nil {
		c.end = cancelled(ctx)
	}
}

// runTool runs the tool of the call.
func (c *call) runTool(ctx context.Context) schema.ToolOutcome {
	t := c.run.loop.tools[c.call.Name]
	if t == nil {
		return schema.ToolOutcome{ID: c.call.ID, Name: c.call.Name, Error: fmt.Sprintf("there is no tool %q", c.call.Name)}
	}
	return t.run(ctx, c.call)
}

// before runs the hooks before the call, and reports whether the tool may run.
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
		c.refuse("did not run, since the query ends", e.err.Error())
	case v.Restart != nil:
		c.restart = v
		c.refuse("did not run, since the turn restarts", v.Restart.Reason)
	case v.Decision == schema.Deny:
		c.refuse("was denied and did not run", v.Reason)
	case v.Decision == schema.Ask && !c.isApproved(turn, m):
		c.refuse("did not run, since no person approved it", v.Reason)
	case v.Decision == schema.Stop:
		c.outcome = c.replacement(m)
		c.showOutcome()
	default:
		c.call, _ = m.currentValue().(schema.ToolCall)
		return true
	}
	return false
}

// isApproved asks a person, as long as the turn lasts.
func (c *call) isApproved(ctx context.Context, m *moment) bool {
	approve := c.run.loop.opt.Approve
	if approve == nil {
		return false
	}
	asked, _ := m.currentValue().(schema.ToolCall)
	yes, err := guarded(ctx, "Approve", func(ctx context.Context) (bool, error) { return approve(ctx, asked, m.verdict.Reason) })
	if err != nil {
		c.run.note([]string{fmt.Sprintf("asking for approval of %s failed: %v", asked.Name, err)})
	}
	return yes && err == nil
}

// refuse sets the outcome of a call that does not run, in words for the model.
func (c *call) refuse(how, why string) {
	c.outcome = schema.ToolOutcome{ID: c.call.ID, Name: c.call.Name,
		Error: "The call " + how + ": " + first(why, "no reason was given"), Notes: c.notes}
	c.showOutcome()
}

// replacement returns the outcome that a hook gave instead of the tool's.
func (c *call) replacement(m *moment) schema.ToolOutcome {
	out, typed := m.stop.(schema.ToolOutcome)
	if !typed {
		out = schema.ToolOutcome{Output: m.verdict.Value}
	}
	out.ID, out.Name = c.call.ID, c.call.Name
	out.Notes = append(out.Notes, c.notes...)
	return out
}

// after runs the hooks of PostToolUse or ToolError, exactly one of them. It also does so
// after the query was cancelled, because the tool ran.
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
	c.outcome, _ = m.currentValue().(schema.ToolOutcome)
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
	c.showOutcome()
}

// inject adds injections to the result, or after all results of the turn. Injections of a
// restart are left for the new turn.
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
	c.delivered = append(c.delivered, v.EventID)
}

// showOutcome shows the outcome of the call.
func (c *call) showOutcome() {
	out := cloneOutcome(c.outcome)
	c.run.say(Chunk{Kind: ToolResultChunk, Text: first(out.Error, string(out.Output)), Result: &out})
}

// A Tool is a function that the model may call.
type Tool struct {
	// Name is the tool's name, unique in the loop.
	Name string
	// Description tells the model what the tool does.
	Description string
	// Schema is the JSON Schema of the input, which is an object; absent: any object.
	Schema jsontext.Value
	// Timeout limits a call; 0: only the query's context limits it.
	Timeout time.Duration
	// Call runs the tool. The input is a JSON object. The model reads the result as JSON, and a
	// [jsontext.Value] unchanged. The model also reads an error, which does not end the query.
	// Calls of one turn run concurrently.
	Call func(ctx context.Context, input jsontext.Value) (any, error)

	fault error
}

// ToolFunc makes a tool of a function. It derives the JSON Schema of the input from the fields
// of In: their JSON names and options, and the tag `description`. A field is required unless it
// is a pointer, omitzero or omitempty. To use another schema, set the tool's Schema.
func ToolFunc[In, Out any](name, description string, f func(context.Context, In) (Out, error)) Tool {
	s, fault := schemaOf[In]()
	return Tool{
		Name: name, Description: description, Schema: s, fault: fault,
		Call: func(ctx context.Context, input jsontext.Value) (any, error) {
			var in In
			if err := schema.Unmarshal(input, &in); err != nil {
				return nil, fmt.Errorf("the input does not fit the tool's schema: %w", err)
			}
			return f(ctx, in)
		},
	}
}

// cloneTools returns a deep copy.
func cloneTools(tools []Tool) []Tool {
	tools = slices.Clone(tools)
	for i := range tools {
		tools[i].Schema = tools[i].Schema.Clone()
	}
	return tools
}

// checkTools returns the tools by name, or an error with all faults.
func checkTools(tools []Tool) (map[string]*Tool, error) {
	var errs []error
	byName := make(map[string]*Tool, len(tools))
	for i := range tools {
		t := &tools[i]
		switch {
		case t.Name == "":
			errs = append(errs, fmt.Errorf("tool %d has no name; write one", i+1))
		case t.Call == nil:
			errs = append(errs, fmt.Errorf("the tool %q has no Call; write the function that runs it", t.Name))
		case byName[t.Name] != nil:
			errs = append(errs, fmt.Errorf("there are two tools %q; give one another name", t.Name))
		case len(t.Schema) > 0 && (t.Schema.Kind() != '{' || !t.Schema.IsValid()):
			errs = append(errs, fmt.Errorf("the schema of the tool %q is not a JSON object", t.Name))
		}
		if t.fault != nil {
			errs = append(errs, fmt.Errorf("the input of the tool %q %w", t.Name, t.fault))
		}
		byName[t.Name] = t
	}
	return byName, errors.Join(errs...)
}

// run calls the tool with an object. Every failure is an outcome.
func (t *Tool) run(ctx context.Context, c schema.ToolCall) schema.ToolOutcome {
	out := schema.ToolOutcome{ID: c.ID, Name: c.Name}
	if t.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, t.Timeout, fmt.Errorf("the tool did not answer within %v", t.Timeout))
		defer cancel()
	}
	v, err := guarded(ctx, "the tool", func(ctx context.Context) (any, error) { return t.Call(ctx, c.Input.Clone()) })
	if err == nil {
		if out.Output, err = encode(v); err != nil {
			err = fmt.Errorf("what the tool returned cannot be written as JSON: %w", err)
		}
	}
	if err != nil {
		out.Error = first(err.Error(), "the tool failed without a message")
	}
	return out
}

// encode encodes a tool's result as JSON that every client accepts.
func encode(v any) (jsontext.Value, error) {
	if raw, ok := v.(jsontext.Value); ok && len(raw) > 0 {
		if !raw.IsValid(jsontext.AllowInvalidUTF8(true)) {
			return nil, errors.New("it is not valid JSON")
		}
		return raw, nil
	}
	data, err := schema.Marshal(v)
	if err != nil {
		return nil, err
	}
	return data, nil
}

// deepest is how deep a schema describes a type. Deeper values may be anything.
const deepest = 16

// schemaOf returns the JSON Schema of T, which must be an object.
func schemaOf[T any]() (jsontext.Value, error) {
	s := describe(reflect.TypeFor[T](), 0)
	if s["type"] != "object" {
		return nil, fmt.Errorf("is a %s, not an object; write a struct or a map", reflect.TypeFor[T]())
	}
	return schema.Marshal(s)
}

// describe returns the schema of a type; an empty schema accepts anything.
func describe(t reflect.Type, depth int) map[string]any {
	if depth > deepest {
		return map[string]any{}
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[jsontext.Value]():
		return map[string]any{}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "contentEncoding": "base64"}
		}
		return map[string]any{"type": "array", "items": describe(t.Elem(), depth+1)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": describe(t.Elem(), depth+1)}
	case reflect.Struct:
		return describeStruct(t, depth)
	}
	return map[string]any{}
}

// describeStruct returns the schema of a struct, with its fields as properties.
func describeStruct(t reflect.Type, depth int) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		p := describe(f.Type, depth+1)
		if text := f.Tag.Get("description"); text != "" {
			p["description"] = text
		}
		properties[name] = p
		if f.Type.Kind() != reflect.Pointer && !strings.Contains(options, "omitzero") && !strings.Contains(options, "omitempty") {
			required = append(required, name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}
