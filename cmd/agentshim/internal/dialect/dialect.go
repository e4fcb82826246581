// Package dialect translates between the hook protocols of agent runtimes and the fabric's
// events and verdicts, one file per runtime.
//
// A dialect only translates: it reads no files and no environment, keeps no state between
// calls, and always returns an answer. Nearly every runtime lets a call pass if it cannot
// read the answer. Tests therefore compare each dialect with recorded payloads, and with a
// model of the runtime's behaviour.
package dialect

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// A Dialect is one runtime's hook protocol.
type Dialect interface {
	// Moments are the runtime's events, those that nobody is asked about included.
	Moments() []Moment
	// Decode reads what the runtime sent. After an error the call holds what could
	// be seen all the same; it is never nil.
	Decode(in Input) (*Call, error)
	// Encode is the answer to c that the runtime obeys. v holds only what the
	// moment can express: see [Express]. Of a call that could not be read, only
	// Moment and Event.HookType may be there.
	Encode(c *Call, v *schema.Verdict) (Answer, error)
	// Refuse is the last resort of a shim that cannot trust itself: a no that the
	// runtime understands at any of its events that can be refused. The reason is
	// never empty.
	Refuse(m Moment, reason string) Answer
}

// An Input is what a runtime gives to a hook.
type Input struct {
	// Moment is the event that the command line or the URL names; the zero Moment:
	// the payload must.
	Moment Moment
	// Payload is what came on stdin, or as a body.
	Payload []byte
	// Env looks up one of [Environment]; nil: there is none.
	Env func(name string) string
}

// The variables in which a runtime passes on its position in a trace.
const (
	TraceParent = "TRACEPARENT"
	TraceState  = "TRACESTATE"
)

// Environment lists the variables of a hook's process that dialects and sessions may read.
// agentshim reads and sends no other variable of a runtime: the environment holds secrets.
func Environment() []string {
	return []string{
		"CLAUDE_PROJECT_DIR", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ATTENDED", "GEMINI_CWD", "GEMINI_PROJECT_DIR",
		"CURSOR_VERSION", "CURSOR_PROJECT_DIR", "COPILOT_CLI", "COPILOT_CLI_BINARY_VERSION", "COPILOT_PROJECT_DIR",
		"CODEX_HOME", "QWEN_CODE_AGENT_ID", TraceParent, TraceState,
	}
}

// A Moment is one event of a runtime, under its own name.
type Moment struct {
	// Name is what the runtime calls it, such as BeforeTool.
	Name string
	// Event is what it is to the fabric; empty: nobody is asked, and the answer is
	// no opinion.
	Event schema.EventType
	// Can says what an answer can express; what is not in it is Impossible.
	Can map[Ability]How
	// Timeout is how long the runtime waits if nobody told it otherwise; 0: as long
	// as it takes.
	Timeout time.Duration
	// Endless: the runtime keeps the agent going at the end of its turn as often as it is told to.
	Endless bool
	// Turns is how often in a row it does so at most; 0: there is no bound, or an agent's own loop counts.
	Turns int
	// Unmarked: its payloads do not say that the end of the turn was put off before.
	Unmarked bool
	// Longest is the longest text, in bytes, that the runtime passes on whole; 0: any.
	Longest int
}

// mostTurns is how often in a row most runtimes keep an agent going.
const mostTurns = 8

// An Ability is something that a verdict may ask a runtime for.
type Ability string

// The abilities.
const (
	// Deny: a tool call or a prompt is refused.
	Deny Ability = "deny"
	// Ask: a person decides.
	Ask Ability = "ask"
	// Approve: an allow also skips the runtime's own prompt.
	Approve Ability = "approve"
	// Rewrite: the tool's input is replaced.
	Rewrite Ability = "rewrite"
	// Inject: the model is told something.
	Inject Ability = "inject"
	// Replace: the tool's output, or the agent's message, is replaced.
	Replace Ability = "replace"
	// Feedback: after a tool call, the model is told what was wrong with it.
	Feedback Ability = "feedback"
	// Stop: the run ends.
	Stop Ability = "stop"
	// Retry: the agent goes on instead of ending its turn.
	Retry Ability = "retry"
	// Restart: the agent's turn begins anew. No runtime's hook can do that.
	Restart Ability = "restart"
	// Effects: the conversation and the flags are changed as hooks say. No runtime's hook can do that.
	Effects Ability = "effects"
)

// How says how a runtime comes by an ability.
type How int

// The ways. The zero How is Impossible: who asks for it is told so, and nothing
// is dropped silently.
const (
	Impossible How = iota
	// Emulated: by other means, here or in the shim, with nearly the same effect.
	Emulated
	// Native: the runtime's protocol has it.
	Native
)

func (h How) String() string { return [...]string{"impossible", "emulated", "native"}[h] }

// A Call is one event as a runtime sent it.
type Call struct {
	// Moment is which of the runtime's events it is.
	Moment Moment
	// Event is the same in the fabric's words, without agent and event id. Its
	// HookType is always that of Moment, also if nothing else could be read.
	Event schema.Event
	// Payload is what the runtime sent, where it is JSON.
	Payload jsontext.Value
	// Key is the same for all deliveries of one tool call at one phase: the runtime's id of
	// the call, or a hash of session, tool and input; empty: every delivery is a call of its own.
	Key string
	// ByID: Key is made of an id that is never used again.
	ByID bool
	// Pair is the same before and after one tool call, for what must wait for the
	// moment after; empty: it cannot be told.
	Pair string
	// Subagent is the runtime's id of the subagent whose event it is; empty: the
	// agent's own. What waits for the agent is not for its subagents.
	Subagent string
	// Parent is the session that the subagent was started in, where the runtime gives it a
	// session of its own; empty: its events have the parent's. Event.SessionID is the parent's.
	Parent string
	// Faulty: the payload could not be read, or is not what it should be.
	Faulty bool
	// Form tells forms of one runtime's protocol apart; only its dialect knows them.
	Form string
}

// An Answer is what a hook's process leaves behind. Over HTTP, Stdout is the body.
type Answer struct {
	Stdout []byte
	Stderr string
	Exit   int
}

// dialects make all runtimes' ones; add yours here. One is made at every call, and
// only that one.
func dialects() map[string]func() Dialect {
	return map[string]func() Dialect{
		"agy":      func() Dialect { return agy{} },
		"claude":   func() Dialect { return newClaude() },
		"codex":    func() Dialect { return newCodex() },
		"copilot":  func() Dialect { return copilot{} },
		"cursor":   func() Dialect { return cursor{} },
		"gemini":   func() Dialect { return gemini{} },
		"generic":  func() Dialect { return generic{} },
		"opencode": func() Dialect { return opencode{} },
		"qwen":     func() Dialect { return newQwen() },
	}
}

// Names lists the runtimes.
func Names() []string { return slices.Sorted(maps.Keys(dialects())) }

// For is the dialect of a runtime.
func For(runtime string) (Dialect, error) {
	if made, ok := dialects()[runtime]; ok {
		return made(), nil
	}
	return nil, fmt.Errorf("unknown runtime %q; write --runtime %s", runtime, strings.Join(Names(), " or "))
}

// Find is the moment that a command line names: as the runtime calls it, or as
// the fabric does.
func Find(d Dialect, name string) (Moment, error) {
	moments := d.Moments()
	for _, m := range moments {
		if m.Name == name {
			return m, nil
		}
	}
	if m, ok := At(d, schema.EventType(name).Canonical()); ok {
		return m, nil
	}
	names := make([]string, 0, len(moments))
	for _, m := range moments {
		names = append(names, m.Name)
	}
	return Moment{}, fmt.Errorf("unknown event %q; write one of %s", name, strings.Join(names, ", "))
}

// At is the first moment of a runtime that is the event t to the fabric.
func At(d Dialect, t schema.EventType) (Moment, bool) {
	if t == "" {
		return Moment{}, false
	}
	for _, m := range d.Moments() {
		if m.Event == t {
			return m, true
		}
	}
	return Moment{}, false
}
