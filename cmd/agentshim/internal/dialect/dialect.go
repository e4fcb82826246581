// Package dialect translates between the hook protocols of agent runtimes and the fabric's
// events and verdicts, one file per protocol.
//
// A dialect only translates: it reads no files and no environment, keeps no state between
// calls, and always returns an answer. Nearly every runtime lets a call pass if it cannot
// read the answer. Tests therefore compare each dialect with recorded payloads, and with a
// model of the runtime's behaviour.
package dialect

import (
	"cmp"
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
	// Moments returns the runtime's events, including those that the fabric does not judge.
	Moments() []Moment
	// Decode reads the runtime's payload. After an error the call holds its readable part.
	Decode(in Input) (*Call, error)
	// Encode returns the answer to c that the runtime obeys. v holds only what the moment can express: see
	// [Express]. Of an unreadable payload, only Moment and Event.HookType are certain.
	Encode(c *Call, v *schema.Verdict) (Answer, error)
	// Refuse is the last resort after a fault in the shim: a denial at each event that can be refused.
	Refuse(m Moment, reason string) Answer
}

// An Input is the input of a hook.
type Input struct {
	// Moment is the event that the command line or the URL names; zero: the payload must name it.
	Moment Moment
	// Payload is the content of stdin or of the HTTP body.
	Payload []byte
	// Env looks up one of [Environment]; nil: no variable is set.
	Env func(name string) string
}

// The variables in which a runtime passes its trace context.
const (
	TraceParent = "TRACEPARENT"
	TraceState  = "TRACESTATE"
)

// Environment lists the variables that dialects and sessions may read. The environment holds secrets, so
// agentshim reads and sends no others.
func Environment() []string {
	return []string{
		"CLAUDE_PROJECT_DIR", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ATTENDED", "GEMINI_CWD", "GEMINI_PROJECT_DIR",
		"CURSOR_VERSION", "CURSOR_PROJECT_DIR", "COPILOT_CLI", "COPILOT_CLI_BINARY_VERSION", "COPILOT_PROJECT_DIR",
		"CODEX_HOME", "QWEN_CODE_AGENT_ID", TraceParent, TraceState,
	}
}

// A Moment is one event of a runtime, under its own name.
type Moment struct {
	// Name is the runtime's own name for it, such as BeforeTool.
	Name string
	// Event is the fabric's event for it; empty: the fabric does not judge it.
	Event schema.EventType
	// Can lists the abilities of an answer. An ability that is missing is Impossible.
	Can map[Ability]How
	// Timeout is the runtime's default timeout for the hook; 0: it waits without a limit.
	Timeout time.Duration
	// Endless: the runtime keeps the agent going at the end of its turn as often as a hook asks for it.
	Endless bool
	// Turns is the limit on how often in a row it does so; 0: there is no limit, or an agent's own loop counts.
	Turns int
	// Unmarked: the payload does not show that a hook has already put off the end of the turn.
	Unmarked bool
	// Longest is the length, in bytes, of the longest text that the runtime passes on whole; 0: no limit.
	Longest int
}

// mostTurns is how often in a row most runtimes keep an agent going.
const mostTurns = 8

func can(native []Ability, emulated ...Ability) map[Ability]How {
	all := make(map[Ability]How, len(native)+len(emulated))
	for _, a := range native {
		all[a] = Native
	}
	for _, a := range emulated {
		all[a] = Emulated
	}
	return all
}

// moments adds the defaults to the moments of a runtime, and those that the fabric does not judge.
func moments(timeout time.Duration, longest int, judged []Moment, unasked ...string) []Moment {
	for _, name := range unasked {
		judged = append(judged, Moment{Name: name})
	}
	for i := range judged {
		m := &judged[i]
		m.Timeout, m.Longest = cmp.Or(m.Timeout, timeout), cmp.Or(m.Longest, longest)
	}
	return judged
}

// An Ability is an effect that a verdict may need from a runtime.
type Ability string

// The abilities.
const (
	Deny     Ability = "deny"     // an answer refuses a tool call or a prompt
	Ask      Ability = "ask"      // a person decides
	Approve  Ability = "approve"  // an allow also skips the runtime's own prompt
	Rewrite  Ability = "rewrite"  // an answer replaces the tool's input
	Inject   Ability = "inject"   // the model gets a text
	Replace  Ability = "replace"  // an answer replaces the tool's output, or the agent's message
	Feedback Ability = "feedback" // after a tool call, the model learns what was wrong with it
	Stop     Ability = "stop"     // the run ends
	Retry    Ability = "retry"    // the agent continues instead of ending its turn
	// Restart: the agent's turn starts again. No runtime's hook can do that.
	Restart Ability = "restart"
	// Effects: hooks change the conversation and the flags. No runtime's hook can do that.
	Effects Ability = "effects"
)

// How says how a runtime supports an ability.
type How int

// The ways. [Express] reports a use of an impossible ability.
const (
	Impossible How = iota
	Emulated       // the dialect or the shim has nearly the same effect by other means
	Native         // the runtime's protocol has it
)

// A Call is one event as a runtime sent it.
type Call struct {
	// Moment is the runtime's event.
	Moment Moment
	// Event is the call without agent and event id. Its HookType is always that of Moment.
	Event schema.Event
	// Payload is the runtime's payload, if it is JSON.
	Payload jsontext.Value
	// Key is the same for all deliveries of one tool call at one phase: the runtime's id of
	// the call, or a hash of session, tool and input; empty: every delivery is a call of its own.
	Key string
	// ByID: Key is made of an id that the runtime never uses again.
	ByID bool
	// Pair is the same before and after one tool call; empty: there is no such identifier.
	Pair string
	// Subagent is the runtime's id of the event's subagent; empty: the event is the agent's own. Items
	// that wait for the agent are not for its subagents.
	Subagent string
	// Parent is the session that started the subagent, if the runtime gives the subagent a session of
	// its own; empty: its events have the parent's. Event.SessionID is the parent's.
	Parent string
	// Faulty: the payload is unreadable or invalid.
	Faulty bool
	// Form distinguishes the forms of one runtime's protocol. Only its dialect uses it.
	Form string
}

// An Answer is the output of a hook's process. Over HTTP, Stdout is the body.
type Answer struct {
	Stdout []byte
	Stderr string
	Exit   int
}

// dialects returns the constructors of all dialects; add yours here.
func dialects() map[string]func() Dialect {
	return map[string]func() Dialect{
		"agy":      func() Dialect { return agy{} },
		"claude":   func() Dialect { return claude{claudelike{runtime: "claude", moments: claudeMoments()}} },
		"codex":    func() Dialect { return claudelike{runtime: "codex", moments: codexMoments(), strict: true} },
		"copilot":  func() Dialect { return copilot{} },
		"cursor":   func() Dialect { return cursor{} },
		"gemini":   func() Dialect { return gemini{} },
		"generic":  func() Dialect { return generic{} },
		"opencode": func() Dialect { return opencode{} },
		"qwen":     func() Dialect { return claudelike{runtime: "qwen", moments: qwenMoments()} },
	}
}

// Names lists the runtimes.
func Names() []string { return slices.Sorted(maps.Keys(dialects())) }

// For returns the dialect of a runtime.
func For(runtime string) (Dialect, error) {
	if made, ok := dialects()[runtime]; ok {
		return made(), nil
	}
	return nil, fmt.Errorf("unknown runtime %q; write --runtime %s", runtime, strings.Join(Names(), " or "))
}

// Find returns the moment that a command line names, by the runtime's name or by the fabric's.
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

// At returns the first moment of a runtime for the event t.
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
