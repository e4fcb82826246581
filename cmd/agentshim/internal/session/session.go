// Package session handles one exchange with a runtime: it gets the runtime's payload and
// always returns an answer that the runtime obeys. `agentshim hook` makes one exchange and
// ends; the daemon makes one per request.
package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// Settings are the parameters of an exchange, from a command line or a URL.
type Settings struct {
	// Runtime names the dialect.
	Runtime string
	Dialect dialect.Dialect
	// Moment is the runtime's event; the zero Moment: the payload names it.
	Moment dialect.Moment
	// Agent is the agent's id; empty: the id in the payload, or else runtime and session.
	Agent string
	// EventID is the event's id if the payload has none; empty: the judge makes one.
	EventID string
	// Workspaces is the folder for workspaces; empty: the event's cwd.
	Workspaces string
	// Unreachable is a value of --unreachable.
	Unreachable string
	// Mute: the client cannot deliver texts to the agent, so the fabric must not send waiting items.
	Mute bool
	// Loop: the client is an agent's own loop. It may use a tool call's id twice, and repeats an event's id
	// only to repeat a question.
	Loop bool
	// Env looks up one of [dialect.Environment].
	Env func(name string) string
	// Versions returns the versions of the runtimes on this machine; nil: unknown.
	Versions func() map[string]string
}

// CheckID returns an error if id is neither empty nor an event's id.
func CheckID(id string) error {
	if id == "" || len(id) == len(uuid.Nil.String()) && uuid.Validate(id) == nil {
		return nil
	}
	return fmt.Errorf("the event's id is %.40q; write a UUID, or leave it empty", id)
}

// An Asker has the fabric judge calls: a [decide.Judge], or a layer before one.
type Asker interface {
	Ask(ctx context.Context, q decide.Question) decide.Judgement
}

// A Store stores injections that the runtime takes only at a later event, and flags of agents.
type Store interface {
	// AddInjections stores injections for the event after an agent's tool call; an empty pair: after any call.
	AddInjections(agent, pair string, all []schema.Injection) error
	// Injections returns them, and RemoveInjections removes them.
	Injections(agent, pair string) []schema.Injection
	RemoveInjections(agent, pair string)
	// Flags returns the flags that hooks set for an agent in a session, as a JSON object.
	Flags(agent, session string) jsontext.Value
	// SetFlags sets flags; null removes one.
	SetFlags(agent, session string, set map[string]jsontext.Value) error
}

// An Exchange is one call of a hook.
type Exchange struct {
	Settings
	// Asker returns the judgement.
	Asker Asker
	// Store stores injections and flags for later events; nil: agentshim drops them with a message.
	Store Store
	// Stderr receives messages for people.
	Stderr io.Writer

	reached *schema.Verdict // the verdict, once there is one
}

// A Reply is the result of an exchange.
type Reply struct {
	dialect.Answer
	// Verdict is the verdict of the answer; nil if it is the last resort of a shim that failed.
	Verdict *schema.Verdict
	// Call is the decoded call; nil if it is unknown.
	Call *dialect.Call

	told func() // removes the delivered injections from the store
}

// Kept returns the function that Told calls; nil: no stored injection was delivered.
func (r *Reply) Kept() (told func()) { return r.told }

// Told removes the delivered injections from the store, when the runtime has the answer.
func (r *Reply) Told() {
	if r.told != nil {
		r.told()
	}
}

// Run has the payload judged and encodes the answer, before ctx ends. unread is the error that cut the payload
// off. If the shim itself fails, Run has the call judged by its routing alone, or else obeys the command line.
func (x *Exchange) Run(ctx context.Context, payload []byte, unread error) Reply {
	if x.Env != nil { // the runtime may follow a trace itself
		ctx = trace.With(ctx, trace.Parse(x.Env(dialect.TraceParent), x.Env(dialect.TraceState)))
	}
	r, broke := attempt(func() Reply { return x.run(ctx, payload, unread) })
	if broke == nil {
		return r
	}
	fmt.Fprintf(x.Stderr, "agentshim: %v\n", broke)
	if x.reached == nil || !x.refused(x.reached) {
		r, again := attempt(func() Reply { return x.run(ctx, nil, broke) })
		if again == nil {
			return r
		}
		broke = errors.Join(broke, again)
		fmt.Fprintf(x.Stderr, "agentshim: %v\n", again)
	}
	return x.lastResort(broke)
}

// attempt returns the result of f, or an error if f panics.
func attempt(f func() Reply) (r Reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("agentshim failed: %v", p)
		}
	}()
	return f(), nil
}

func (x *Exchange) refused(v *schema.Verdict) bool {
	t := x.Moment.Event
	return t == "" || t.Terminal(v.Decision) || t.Blocks(v.Decision)
}

func (x *Exchange) run(ctx context.Context, payload []byte, unread error) Reply {
	c, err := x.Dialect.Decode(dialect.Input{Moment: x.Moment, Payload: payload, Env: x.Env})
	if unread != nil {
		err = unread
	}
	if c.Moment.Name != "" && c.Moment.Event == "" && err == nil {
		return x.encode(c, &schema.Verdict{}, nil) // the fabric does not judge this event
	}
	x.belong(c)
	if named := x.identify(c, err != nil); err == nil {
		err = named
	}
	if c.Faulty = err != nil; c.Faulty {
		fmt.Fprintf(x.Stderr, "agentshim: %v\n", err)
	}
	x.introduce(&c.Event)
	// Items that wait are not for subagents, and not for an answer that the agent never sees.
	x.recall(c)
	spent := x.spent(c)
	c.Event.Mute = x.Mute || c.Subagent != "" || c.Moment.Can[dialect.Inject] != dialect.Native || spent != nil
	// A runtime that cannot restart a turn can take the content of a restart only where a turn begins or ends.
	t := c.Event.HookType
	c.Event.MidTurn = c.Moment.Can[dialect.Restart] != dialect.Native && (t.HasTool() || t == schema.BeforeLLMCall || t == schema.AfterLLMCall)
	q := decide.Question{
		Event: &c.Event, Unreadable: err, Native: payload, Workspaces: x.workspaces(c), Unreachable: x.Unreachable,
		Key: c.Key, ByID: c.ByID, Pair: c.Pair,
	}
	if id := c.Event.EventID; x.Loop && c.Key != "" && id != "" {
		q.Key, q.Again = "event/"+id, true
	}
	j := x.Asker.Ask(ctx, q)
	x.reached = j.Verdict
	x.dropTexts(c)
	return x.encode(c, j.Verdict, spent)
}

func (x *Exchange) workspaces(c *dialect.Call) string {
	if x.Workspaces == "" && filepath.IsAbs(c.Event.Cwd) {
		return c.Event.Cwd
	}
	return x.Workspaces
}

// encode returns the verdict as the runtime expects it. spent is why the turn cannot be put off again.
func (x *Exchange) encode(c *dialect.Call, v *schema.Verdict, spent error) Reply {
	r := Reply{Verdict: v, Call: c}
	said, later, lost := dialect.Express(c.Moment, v)
	x.bound(c, said, spent)
	x.flag(c, said)
	x.postpone(c, said, later)
	for _, l := range lost {
		fmt.Fprintf(x.Stderr, "agentshim: %s\n", l)
	}
	r.told = x.addPostponed(c, said)
	x.shorten(c, said)
	var err error
	if r.Answer, err = x.Dialect.Encode(c, said); err == nil {
		return r
	}
	err = fmt.Errorf("encoding the answer: %w", err)
	fmt.Fprintf(x.Stderr, "agentshim: %v\n", err)
	if c.Moment.Event.Terminal(v.Decision) {
		return Reply{Answer: x.Dialect.Refuse(c.Moment, err.Error()), Call: c}
	}
	return x.lastResort(err)
}

// lastResort returns the answer of a shim that failed.
func (x *Exchange) lastResort(why error) Reply {
	closed := x.Unreachable == decide.UnreachableDeny || x.reached != nil && x.refused(x.reached)
	r, err := attempt(func() Reply {
		if closed {
			return Reply{Answer: x.Dialect.Refuse(x.Moment, why.Error())}
		}
		a, err := x.Dialect.Encode(&dialect.Call{Moment: x.Moment, Faulty: true}, &schema.Verdict{HookErrors: []string{why.Error()}})
		if err != nil {
			panic(err)
		}
		return Reply{Answer: a}
	})
	if err != nil && closed {
		// Nearly every runtime takes this for a denial.
		return Reply{Answer: dialect.Answer{Stderr: why.Error(), Exit: 2}}
	}
	return r
}

// identify sets the agent and the other routing of an event. An unreadable event counts as a tool call, which
// policies guard most. The error says that no agent can have that name.
func (x *Exchange) identify(c *dialect.Call, unreadable bool) error {
	e := &c.Event
	if unreadable && e.HookType == "" {
		e.HookType = schema.PreToolUse
		if m, ok := dialect.At(x.Dialect, e.HookType); ok && c.Moment.Name == "" {
			c.Moment = m
		}
	}
	if e.Runtime == "" {
		e.Runtime = x.Runtime
	}
	switch {
	case x.Agent != "":
		e.AgentID = x.Agent
	case e.AgentID != "":
	case e.SessionID != "":
		e.AgentID = e.Runtime + "-" + e.SessionID
	case unreadable:
		e.AgentID = schema.UnknownAgent
	default:
		e.AgentID = e.Runtime
	}
	_, err := bus.Token(e.AgentID)
	if err != nil {
		e.AgentID = schema.UnknownAgent
	}
	if e.EventID == "" {
		e.EventID = x.EventID
	}
	if e.Timestamp.IsZero() {
		e.Timestamp = time.Now().UTC()
	}
	return err
}

// introduce adds the host and the runtime's version to a new session, so that operators find silent agents.
func (x *Exchange) introduce(e *schema.Event) {
	if e.HookType != schema.SessionStart {
		return
	}
	labels := map[string]string{}
	if host, err := os.Hostname(); err == nil && host != "" {
		labels[schema.LabelHost] = host
	}
	if v := x.version(e.Runtime); v != "" {
		labels[schema.LabelVersion] = v
	}
	maps.Copy(labels, e.Labels) // the runtime's own labels take precedence
	e.Labels = labels
}

// version returns the version of the runtime. Only few runtimes pass it to their hooks.
func (x *Exchange) version(runtime string) string {
	for _, v := range [][2]string{{"cursor", "CURSOR_VERSION"}, {"copilot", "COPILOT_CLI_BINARY_VERSION"}} {
		if v[0] == runtime && x.Env != nil && x.Env(v[1]) != "" {
			return x.Env(v[1])
		}
	}
	if x.Versions == nil {
		return ""
	}
	return x.Versions()[runtime]
}
