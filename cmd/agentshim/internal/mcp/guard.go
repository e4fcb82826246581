package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

// A Channel has content for an agent that waits for the result of a tool.
type Channel interface {
	// Take returns the content for a tool that has one of these names. done, if not nil, must be called once,
	// with whether the agent got it.
	Take(names ...string) (content string, done func(told bool))
}

// DefaultTimeout is the default of [Guard.Timeout].
const DefaultTimeout = 60 * time.Second

// ackTime limits the time for the acknowledgement of a delivery.
const ackTime = 100 * time.Millisecond

// A Guard asks the fabric about tool calls, before and after the server runs them.
type Guard struct {
	// Asker gets the verdicts.
	Asker decide.Asker
	// Agent is the agent's id; empty: the client's runtime and session.
	Agent string
	// Server is the server's name in the runtime; empty: the server's own name, or Fallback.
	Server, Fallback string
	// Cwd is the workspace that hooks see.
	Cwd string
	// Workspaces and Unreachable are those of [decide.Question].
	Workspaces, Unreachable string
	// Timeout limits the time for one verdict; 0: [DefaultTimeout].
	Timeout time.Duration
	// Channel is read after each call; nil: there is no channel.
	Channel Channel
	// Stderr gets messages for the operator.
	Stderr io.Writer

	approvals approvals
}

type call struct {
	message
	caller
	tool   string
	params object
	// key identifies the call in questions to the fabric if the client has no id for it.
	key string
	// input are the arguments that a hook put in place of the call's own; nil: they are unchanged.
	input jsontext.Value
	// injections are from the verdict before the call. The agent reads them after it.
	injections []schema.Injection
}

// newCall reads a call. If the call is ambiguous, only its id is of use.
func (g *Guard) newCall(m message, p *endpoints) *call {
	c := &call{message: m, params: m.child("params"), key: rand.Text()}
	meta := c.params.child("_meta")
	c.caller = p.caller(&meta, g)
	c.tool = c.params.text("name")
	return c
}

// arguments returns the arguments of a call as the client sent them; {} if it sent no arguments.
func (c *call) arguments() jsontext.Value {
	if args := c.params.get("arguments"); args.Kind() == '{' {
		return args
	}
	return jsontext.Value(`{}`)
}

// A ruling is what happens with a call before the server has it.
type ruling struct {
	forward []byte // the message for the server; nil: the call does not run
	answer  []byte // the response for the client if the call does not run; nil: no response
	// ask is the question to a person who must approve forward; empty: no approval is needed.
	ask string
}

// rule returns the ruling on a call, with the answer of a person if needed. p is nil over the limits.
func (g *Guard) rule(c *call, p *pendingCall, e *elicitation, send func([]byte) error) ruling {
	if p == nil {
		return g.refuse(c, "too many calls are under way; wait for answers before you make more calls")
	}
	defer p.cancel()
	if r, ok := g.resume(c); ok {
		return r
	}
	r := g.before(p.ctx, c)
	switch {
	case r.ask == "":
		return r
	case p.ctx.Err() != nil:
		return g.refuse(c, "the call ended before a person could approve it")
	case c.modern:
		return g.askInResult(c, r)
	}
	if approved, why := e.ask(p.ctx, c, r.ask, send); !approved {
		return g.refuse(c, why)
	}
	return r
}

// before returns the ruling by the verdict before a call.
func (g *Guard) before(ctx context.Context, c *call) ruling {
	if c.ambiguity != nil {
		g.log("denied an ambiguous tools/call: %v", c.ambiguity)
		return g.refuse(c, fmt.Sprintf("this call is ambiguous: %v. Send it in the form of the MCP specification.", c.ambiguity))
	}
	e := g.newEvent(schema.PreToolUse, c)
	e.Mute = true // a lease would have to last as long as the call
	e.ToolInput = c.arguments()
	v := g.ask(ctx, c, e)
	if t := v.Terminate; t != nil && !schema.PreToolUse.Terminal(v.Decision) {
		v.Decision, v.Reason = schema.Deny, cmp.Or(t.Reason, "this run must end now; make no more tool calls")
	}
	v, injections, lost := dialect.Express(momentBefore(c.canAsk), v)
	g.logLost(lost, v)
	c.injections = injections
	switch v.Decision {
	case schema.Stop:
		result := withOutput(object{raw: []byte(`{}`)}, stopValue(v))
		return ruling{answer: c.answer(withContent(result, textItems(contents(c.injections)...)))}
	case schema.Deny, schema.Fail:
		return g.refuse(c, cmp.Or(v.Reason, "a hook denies this call, without a reason"))
	}
	r := ruling{forward: c.raw}
	if v.UpdatedInput != nil {
		if v.UpdatedInput.Kind() != '{' {
			return g.refuse(c, "a hook rewrites the arguments of this call to a value that is not a JSON object; ask the operator to fix the hook")
		}
		c.input = v.UpdatedInput
		r.forward = c.with("params", c.params.with("arguments", c.input))
	}
	if v.Decision == schema.Ask {
		r.ask = cmp.Or(v.Reason, "A policy requires that a person approves this call.")
	}
	return r
}

func (g *Guard) refuse(c *call, reason string) ruling {
	texts := append([]string{"Blocked by policy: " + reason}, contents(c.injections)...)
	return ruling{answer: c.answer(errorResult(c.modern, textItems(texts...)))}
}

// answer returns the response to a call with a result; nil if the call is a notification.
func (c *call) answer(result []byte) []byte {
	if c.get("id") == nil {
		return nil
	}
	return resultResponse(c.id, result)
}

// after asks about the server's response m to a call, and returns the response for the client. onDelivered
// must be called once, with whether the client got it. The agent reads nothing of a cancelled call.
func (g *Guard) after(ctx context.Context, c *call, m *message, cancelled bool) (response []byte, onDelivered func(ok bool)) {
	result, err := readObject(m.get("result"))
	isResult := err == nil && !m.isError()
	fault := m.child("error")
	needsURL := strings.TrimSpace(string(fault.get("code"))) == "-32042" // the client must open a page and call again
	if isResult && !isFinal(&result) || !isResult && (!m.isError() || needsURL) {
		return m.raw, func(bool) {}
	}
	verdict := g.ask(ctx, c, g.eventAfter(c, m, &result, cancelled))
	v, _, lost := dialect.Express(momentAfter(isResult && !hasFailed(&result)), verdict)
	g.logLost(lost, v)
	texts := textsAfter(c, v)
	done := func(bool) {}
	if g.Channel != nil && isResult && !cancelled {
		if content, taken := g.Channel.Take(c.tool, c.toolName(c.tool)); taken != nil {
			texts, done = append(texts, content), taken
		}
	}
	onDelivered = func(ok bool) {
		done(ok)
		if ok && !cancelled {
			g.Asker.Handed(context.WithoutCancel(ctx), verdict, ackTime)
		}
	}
	if len(texts) == 0 && v.UpdatedOutput == nil {
		return m.raw, onDelivered
	}
	if !isResult { // clients do not show the model what is beside a JSON-RPC error
		result, _ = readObject(errorResult(c.modern, textItems("MCP error "+string(fault.get("code"))+": "+fault.text("message"))))
	}
	if v.UpdatedOutput != nil {
		if verdict.Value != nil { // a stop replaces the whole result
			result, _ = readObject(result.without("isError"))
		}
		result = withOutput(result, v.UpdatedOutput)
	}
	out := withContent(result, textItems(texts...))
	if !isResult {
		return resultResponse(m.id, out), onDelivered
	}
	return m.with("result", out), onDelivered
}

func (g *Guard) eventAfter(c *call, m *message, result *object, cancelled bool) *schema.Event {
	t := schema.PostToolUse
	if m.isError() || hasFailed(result) {
		t = schema.ToolError
	}
	e := g.newEvent(t, c)
	e.Mute = cancelled
	if e.ToolInput = c.input; e.ToolInput == nil {
		e.ToolInput = c.arguments()
	}
	if m.isError() {
		fault := m.child("error")
		e.Error = cmp.Or(fault.text("message"), "the server answered with an error")
		return e
	}
	e.ToolOutput = toolOutput(result)
	if t == schema.ToolError {
		e.Error = contentText(result)
	}
	return e
}

// textsAfter returns what the agent reads in addition to the tool's output.
func textsAfter(c *call, v *schema.Verdict) (texts []string) {
	switch v.Decision {
	case schema.Deny:
		texts = append(texts, "A hook objects to this call: "+cmp.Or(v.Reason, "it gives no reason"))
	case schema.Fail:
		texts = append(texts, "A hook ends the run because of this call: "+cmp.Or(v.Reason, "it gives no reason"))
	}
	if t := v.Terminate; t != nil {
		texts = append(texts, "This run must end now: "+cmp.Or(t.Reason, "make no more tool calls"))
	}
	return append(append(texts, contents(c.injections)...), contents(v.Injections)...)
}

func contents(all []schema.Injection) (texts []string) {
	for i := range all {
		if all[i].Content != "" {
			texts = append(texts, all[i].Content)
		}
	}
	return texts
}

// stopValue returns what a stop puts in place of the tool's output.
func stopValue(v *schema.Verdict) jsontext.Value {
	if len(v.Value) > 0 {
		return v.Value
	}
	data, _ := schema.Marshal(cmp.Or(v.Reason, "a hook stopped the call")) // a text has no error
	return data
}

// newEvent returns an event with what all events about a call have.
func (g *Guard) newEvent(t schema.EventType, c *call) *schema.Event {
	e := &schema.Event{
		HookType: t, AgentID: c.agent, SessionID: c.session, Runtime: c.runtime, Timestamp: time.Now().UTC(),
		ToolName: c.toolName(c.tool), ToolUseID: c.toolUse, Cwd: g.Cwd, MidTurn: true,
		ToolKind: schema.KindMCP, ToolArgs: schema.MCPFacts(c.server, c.tool),
	}
	if _, err := bus.Token(e.AgentID); err != nil {
		e.AgentID = schema.UnknownAgent
	}
	return e
}

func (g *Guard) ask(ctx context.Context, c *call, e *schema.Event) *schema.Verdict {
	timeout := g.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	q := decide.Question{Event: e, Workspaces: g.Workspaces, Unreachable: g.Unreachable, Native: c.get("params")}
	// The client's own hook may ask about the same call.
	if q.ByID, q.Pair = true, c.toolUse; c.toolUse == "" {
		q.Pair, q.Apart = c.key, c.hookName(c.tool)
	}
	phase := "post"
	if e.HookType == schema.PreToolUse {
		phase = "pre"
	}
	q.Key = phase + "/" + q.Pair
	v := *g.Asker.Ask(ctx, q).Verdict
	return &v
}

func (g *Guard) log(format string, args ...any) {
	fmt.Fprintf(g.Stderr, "agentshim: "+format+"\n", args...)
}

// logLost logs which parts of a verdict the proxy cannot express.
func (g *Guard) logLost(lost []string, v *schema.Verdict) {
	if len(dialect.Flags(v)) > 0 {
		g.log("dropped the effect set_flag, which the MCP proxy does not support")
	}
	for _, l := range lost {
		g.log("%s", l)
	}
}

// momentBefore returns which verdicts the proxy can express before a call.
func momentBefore(canAsk bool) dialect.Moment {
	can := map[dialect.Ability]dialect.How{
		dialect.Deny: dialect.Native, dialect.Rewrite: dialect.Native, dialect.Stop: dialect.Native, dialect.Inject: dialect.Emulated,
	}
	if canAsk {
		can[dialect.Ask] = dialect.Native
	}
	return dialect.Moment{Name: methodCall, Event: schema.PreToolUse, Can: can}
}

func momentAfter(succeeded bool) dialect.Moment {
	t := schema.ToolError
	if succeeded {
		t = schema.PostToolUse
	}
	return dialect.Moment{Name: "the result of " + methodCall, Event: t, Can: map[dialect.Ability]dialect.How{
		dialect.Replace: dialect.Native, dialect.Inject: dialect.Native, dialect.Feedback: dialect.Native,
	}}
}
