// Package session handles one exchange with a runtime: it gets the runtime's payload and
// always returns an answer that the runtime obeys. `agentshim hook` makes one exchange and
// ends; the daemon makes one per request.
package session

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// Settings are what a command line or a URL says about an exchange.
type Settings struct {
	// Runtime names the dialect.
	Runtime string
	Dialect dialect.Dialect
	// Moment is the runtime's event; the zero Moment: the payload names it.
	Moment dialect.Moment
	// Agent is the agent's id; empty: what the payload says, else the runtime and
	// the session.
	Agent string
	// EventID is the event's id where the payload has none; empty: one is made.
	EventID string
	// Workspaces is the folder for workspaces; empty: the event's cwd.
	Workspaces string
	// Unreachable is a word of --unreachable.
	Unreachable string
	// Mute: whoever asks can tell the agent nothing, so that nothing that waits is to come.
	Mute bool
	// Loop: an agent's own loop asks. It may use a tool call's id twice, but an event's
	// only to ask again about what it heard no answer to.
	Loop bool
	// Env looks up one of [dialect.Environment].
	Env func(name string) string
	// Versions are those of the runtimes on this machine; nil: unknown. They are
	// asked for only when a session starts.
	Versions func() map[string]string
}

// CheckID refuses what is no event's id; none at all is one that will be made.
func CheckID(id string) error {
	if id == "" || len(id) == len(uuid.Nil.String()) && uuid.Validate(id) == nil {
		return nil
	}
	return fmt.Errorf("the event's id is %.40q; write a UUID, or leave it empty", id)
}

// An Asker gets calls judged: a [judge.Judge], or what stands before one.
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
	// Flags returns the flags that hooks set for an agent in a session, as a JSON object; nil if there are none.
	Flags(agent, session string) jsontext.Value
	// SetFlags sets flags; null removes one.
	SetFlags(agent, session string, set map[string]jsontext.Value) error
}

// An Exchange is one call of a hook.
type Exchange struct {
	Settings
	// Asker judges.
	Asker Asker
	// Store stores injections and flags for later events; nil: agentshim drops them with a message.
	Store Store
	// Stderr hears what people should know.
	Stderr io.Writer

	reached *schema.Verdict // what the fabric said, once it did
}

// A Reply is what came of an exchange.
type Reply struct {
	dialect.Answer
	// Verdict is what the answer says; nil if it is the last resort of a shim that failed.
	Verdict *schema.Verdict
	// Call is what was asked about; nil if not even that is known.
	Call *dialect.Call

	told func() // removes the delivered injections from the store
}

// Kept is what Told does; nil: nothing was kept for this moment.
func (r *Reply) Kept() (told func()) { return r.told }

// Told is to be called when the runtime has the answer.
func (r *Reply) Told() {
	if r.told != nil {
		r.told()
	}
}

// Run has the payload judged and encodes the answer, before ctx ends.
// unread is why there is no whole payload; nil: there is.
//
// When the shim itself breaks, the call is judged once more by its routing
// alone, as one that cannot be read; and when that breaks as well, by what the
// command line says.
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

// attempt is what f says, or how it broke.
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
		return x.encode(c, &schema.Verdict{}, nil) // nobody is asked about this one
	}
	x.belong(c)
	if named := x.identify(c, err != nil); err == nil {
		err = named
	}
	if c.Faulty = err != nil; c.Faulty {
		fmt.Fprintf(x.Stderr, "agentshim: %v\n", err)
	}
	x.introduce(&c.Event)
	// What waits for an agent is not for its subagents, and not for an answer that
	// the agent never sees.
	x.recall(c)
	spent := x.spent(c)
	c.Event.Mute = x.Mute || c.Subagent != "" || c.Moment.Can[dialect.Inject] != dialect.Native || spent != nil
	c.Event.MidTurn = midTurn(c)
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

// midTurn reports whether the agent is in the midst of a turn that its runtime cannot
// restart. The content of a restart can be told when a turn begins, and at its end,
// where the agent goes on with it.
func midTurn(c *dialect.Call) bool {
	t := c.Event.HookType
	return c.Moment.Can[dialect.Restart] != dialect.Native && (t.HasTool() || t == schema.BeforeLLMCall || t == schema.AfterLLMCall)
}

func (x *Exchange) workspaces(c *dialect.Call) string {
	if x.Workspaces == "" && filepath.IsAbs(c.Event.Cwd) {
		return c.Event.Cwd
	}
	return x.Workspaces
}

// encode says the verdict as the runtime expects it. spent is why the end of a
// turn is not put off any more.
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

// lastResort is what a shim that cannot trust itself says.
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
		// What nearly every runtime takes for a no.
		return Reply{Answer: dialect.Answer{Stderr: why.Error(), Exit: 2}}
	}
	return r
}

// identify says whose event it is. Of an unreadable one, what nobody knows is
// taken for what is guarded most. The error says that nobody can be asked about
// an agent of that name.
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
