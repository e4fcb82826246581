package mcp

import (
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
	agentsession "github.com/hookfabric/hookfabric/cmd/agentshim/internal/session"
	"github.com/hookfabric/hookfabric/schema"
)

// An Asker gets calls judged, and is told what the agent has of that.
type Asker interface {
	agentsession.Asker
	Handed(ctx context.Context, v *schema.Verdict, within time.Duration)
}

// A Channel has content for an agent that waits for the result of a tool.
type Channel interface {
	// Take is what there is for a tool that has one of these names. done is called
	// once, and says whether the agent has it; nil: there is nothing.
	Take(names ...string) (content string, done func(told bool))
}

// DefaultTimeout is how long one question may take.
const DefaultTimeout = 60 * time.Second

// ackTime is how long it may take to say that something was handed over.
const ackTime = 100 * time.Millisecond

// A Guard has tool calls judged, before and after they are made.
type Guard struct {
	// Asker judges.
	Asker Asker
	// Agent is the agent's id; empty: the client's runtime and session.
	Agent string
	// Server is what the runtime calls the server; empty: what it calls itself, else Fallback.
	Server, Fallback string
	// Cwd is the workspace that hooks are told of.
	Cwd string
	// Workspaces and Unreachable are those of [judge.Question].
	Workspaces, Unreachable string
	// Timeout bounds each question; 0: [DefaultTimeout].
	Timeout time.Duration
	// Channel is looked into after each call; nil: there is none.
	Channel Channel
	// Stderr hears what people should know.
	Stderr io.Writer

	rounds rounds
}

// A call is one tools/call on its way.
type call struct {
	message
	caller
	tool   string
	params object
	// own is what the proxy itself calls the call.
	own string
	// ran are the arguments that a hook made of the call's own; nil: it runs with these.
	ran jsontext.Value
	// later is what hooks said before the call and the agent reads after it.
	later []schema.Injection
}

// newCall reads a call. Of one that is not clear, only its id is of use.
func (g *Guard) newCall(m message, p *peer) *call {
	c := &call{message: m, params: m.inner("params")}
	meta := c.params.inner("_meta")
	c.caller = p.caller(&meta, g)
	c.tool = c.params.text("name")
	c.own = rand.Text()
	return c
}

// A ruling is what becomes of a call before the server has seen it.
type ruling struct {
	// forward is the message for the server; nil: there is none.
	forward []byte
	// answer is what the client gets in the place of the server's; nil: nothing.
	answer []byte
	// ask is what a person is to be asked before forward counts; empty: nobody is.
	ask string
}

// before has a call judged that the server has not seen.
func (g *Guard) before(ctx context.Context, c *call) ruling {
	if c.unclear != nil {
		g.say("denied an ambiguous tools/call: %v", c.unclear)
		return g.refused(c, fmt.Sprintf("this call is ambiguous: %v. Send it in the form of the MCP specification.", c.unclear))
	}
	e := g.event(schema.PreToolUse, c)
	e.Mute = true // the lease would have to last as long as the call
	e.ToolInput = input(&c.params)
	v := g.judge(ctx, c, e)
	if t := v.Terminate; t != nil && !schema.PreToolUse.Terminal(v.Decision) {
		v.Decision, v.Reason = schema.Deny, first(t.Reason, "this run must end now; make no more tool calls")
	}
	said, later, lost := dialect.Express(preMoment(c.asks), v)
	g.lose(lost, said)
	c.later = later
	switch said.Decision {
	case schema.Stop:
		result := replaced(object{raw: []byte(`{}`)}, stopped(said))
		return ruling{answer: g.answer(c, added(result, items(contents(c.later)...)))}
	case schema.Deny, schema.Fail:
		return g.refused(c, first(said.Reason, "a hook denies this call, without a reason"))
	}
	r := ruling{forward: c.raw}
	if said.UpdatedInput != nil {
		if said.UpdatedInput.Kind() != '{' {
			return g.refused(c, "a hook rewrites the arguments of this call to a value that is not a JSON object; ask the operator to fix the hook")
		}
		c.ran = said.UpdatedInput
		r.forward = c.with("params", c.params.with("arguments", c.ran))
	}
	if said.Decision == schema.Ask {
		r.ask = first(said.Reason, "A policy requires that a person approves this call.")
	}
	return r
}

// refused is the answer to a call that is not made. Nobody waits for one to a
// notification.
func (g *Guard) refused(c *call, reason string) ruling {
	texts := append([]string{"Blocked by policy: " + reason}, contents(c.later)...)
	return ruling{answer: g.answer(c, errorResult(c.modern, items(texts...)))}
}

// answer is a result as the answer to a call.
func (g *Guard) answer(c *call, result []byte) []byte {
	if c.get("id") == nil {
		return nil
	}
	return response(c.id, "result", result)
}

// after has the server's answer to a call looked at, and returns what the client
// gets. told is called once, when the client has it or cannot get it any more.
// over: the client has cancelled the call, so that nobody can be told anything.
func (g *Guard) after(ctx context.Context, c *call, m *message, over bool) (out []byte, told func(ok bool)) {
	none := func(bool) {}
	result, err := readObject(m.get("result"))
	isResult := err == nil && !m.faulted()
	if !isResult && !m.faulted() || isResult && !finished(&result) || !isResult && waits(m) {
		return m.raw, none
	}
	v := g.judge(ctx, c, g.outcome(c, m, &result, isResult, over))
	said, _, lost := dialect.Express(postMoment(isResult && !failed(&result)), v)
	g.lose(lost, said)
	told = func(ok bool) {
		if ok && !over {
			g.Asker.Handed(context.WithoutCancel(ctx), v, ackTime)
		}
	}
	texts := g.texts(c, said)
	if g.Channel != nil && isResult && !over {
		if content, done := g.Channel.Take(c.tool, c.toolName(c.tool)); done != nil {
			texts = append(texts, content)
			handed := told
			told = func(ok bool) { done(ok); handed(ok) }
		}
	}
	if len(texts) == 0 && said.UpdatedOutput == nil {
		return m.raw, told
	}
	if !isResult { // what stands beside a JSON-RPC error nobody shows to the model
		e := m.inner("error")
		result, _ = readObject(errorResult(c.modern, items("MCP error "+string(e.get("code"))+": "+e.text("message"))))
	}
	if said.UpdatedOutput != nil {
		if v.Value != nil { // of a stop: it is the whole result
			result, _ = readObject(result.without("isError"))
		}
		result = replaced(result, said.UpdatedOutput)
	}
	shown := added(result, items(texts...))
	if !isResult {
		return response(m.id, "result", shown), told
	}
	return m.with("result", shown), told
}

// outcome is the event after a call.
func (g *Guard) outcome(c *call, m *message, result *object, isResult, over bool) *schema.Event {
	t := schema.PostToolUse
	if !isResult || failed(result) {
		t = schema.ToolError
	}
	e := g.event(t, c)
	e.Mute = over
	if e.ToolInput = c.ran; e.ToolInput == nil {
		e.ToolInput = input(&c.params)
	}
	if isResult {
		e.ToolOutput = output(result)
		if t == schema.ToolError {
			e.Error = spoken(result)
		}
		return e
	}
	fault := m.inner("error")
	e.Error = first(fault.text("message"), "the server answered with an error")
	return e
}

// texts are what the agent reads beside the tool's output.
func (g *Guard) texts(c *call, v *schema.Verdict) (texts []string) {
	switch v.Decision {
	case schema.Deny:
		texts = append(texts, "A hook objects to this call: "+first(v.Reason, "it gives no reason"))
	case schema.Fail:
		texts = append(texts, "A hook ends the run because of this call: "+first(v.Reason, "it gives no reason"))
	}
	if t := v.Terminate; t != nil {
		texts = append(texts, "This run must end now: "+first(t.Reason, "make no more tool calls"))
	}
	return append(append(texts, contents(c.later)...), contents(v.Injections)...)
}

// contents are the texts of injections.
func contents(all []schema.Injection) (texts []string) {
	for i := range all {
		if all[i].Content != "" {
			texts = append(texts, all[i].Content)
		}
	}
	return texts
}

// stopped is what a stop gives in the place of the tool's output.
func stopped(v *schema.Verdict) jsontext.Value {
	if len(v.Value) > 0 {
		return v.Value
	}
	data, err := schema.Marshal(first(v.Reason, "a hook stopped the call"))
	if err != nil {
		return jsontext.Value(`"a hook stopped the call"`)
	}
	return data
}

// event is what is always said of a call.
func (g *Guard) event(t schema.EventType, c *call) *schema.Event {
	e := &schema.Event{
		HookType: t, AgentID: c.agent, SessionID: c.session, Runtime: c.runtime, Timestamp: time.Now().UTC(),
		ToolName: c.toolName(c.tool), ToolUseID: c.use, Cwd: g.Cwd, MidTurn: true,
	}
	c.facts(e, c.tool)
	if _, err := bus.Token(e.AgentID); err != nil {
		e.AgentID = schema.UnknownAgent
	}
	return e
}

// input are a call's arguments; without any, an object that is empty.
func input(params *object) jsontext.Value {
	if args := params.get("arguments"); args.Kind() == '{' {
		return args
	}
	return jsontext.Value(`{}`)
}

// judge asks, within the time for one question.
func (g *Guard) judge(ctx context.Context, c *call, e *schema.Event) *schema.Verdict {
	timeout := g.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	q := decide.Question{Event: e, Workspaces: g.Workspaces, Unreachable: g.Unreachable, Native: c.get("params")}
	// The client's own hook may ask about the same call.
	if q.ByID, q.Pair = true, c.use; c.use == "" {
		q.Pair, q.Apart = c.own, c.hookName(c.tool)
	}
	q.Key = phase(e.HookType) + "/" + q.Pair
	j := g.Asker.Ask(ctx, q)
	v := *j.Verdict
	return &v
}

// phase is before or after a call: what hooks call a failure may be a result here.
func phase(t schema.EventType) string {
	if t == schema.PreToolUse {
		return "pre"
	}
	return "post"
}

// waits reports whether an error asks the client to do something and to call again.
func waits(m *message) bool {
	e := m.inner("error")
	return strings.TrimSpace(string(e.get("code"))) == "-32042" // a page to be opened first
}

func (g *Guard) say(format string, args ...any) {
	fmt.Fprintf(g.Stderr, "agentshim: "+format+"\n", args...)
}

func (g *Guard) lose(lost []string, said *schema.Verdict) {
	if len(dialect.Flags(said)) > 0 {
		g.say("dropped the effect set_flag, which the MCP proxy does not support")
	}
	for _, l := range lost {
		g.say("%s", l)
	}
}

// preMoment is what can be said about a call before it is made.
func preMoment(asks bool) dialect.Moment {
	can := map[dialect.Ability]dialect.How{
		dialect.Deny: dialect.Native, dialect.Rewrite: dialect.Native, dialect.Stop: dialect.Native, dialect.Inject: dialect.Emulated,
	}
	if asks {
		can[dialect.Ask] = dialect.Native
	}
	return dialect.Moment{Name: methodCall, Event: schema.PreToolUse, Can: can}
}

// postMoment is what can be said about a call after it was made.
func postMoment(well bool) dialect.Moment {
	t := schema.ToolError
	if well {
		t = schema.PostToolUse
	}
	return dialect.Moment{Name: "the result of " + methodCall, Event: t, Can: map[dialect.Ability]dialect.How{
		dialect.Replace: dialect.Native, dialect.Inject: dialect.Native, dialect.Feedback: dialect.Native,
	}}
}
