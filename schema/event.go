package schema

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// EventType names one moment of an agent's loop.
type EventType string

// The moments of an agent's life at which hooks run.
const (
	SessionStart        EventType = "SessionStart"
	SessionEnd          EventType = "SessionEnd"
	UserPromptSubmit    EventType = "UserPromptSubmit"
	BeforeLLMCall       EventType = "BeforeLLMCall"
	AfterLLMCall        EventType = "AfterLLMCall"
	PreToolUse          EventType = "PreToolUse"
	PostToolUse         EventType = "PostToolUse"
	ToolError           EventType = "ToolError"
	BeforeFinalResponse EventType = "BeforeFinalResponse"
	QueryEnd            EventType = "QueryEnd"
)

// EventTypes lists every event, in the order of an agent's life.
func EventTypes() []EventType {
	return []EventType{SessionStart, UserPromptSubmit, BeforeLLMCall, AfterLLMCall, PreToolUse,
		PostToolUse, ToolError, BeforeFinalResponse, QueryEnd, SessionEnd}
}

// Known reports whether t is one of the ten events.
func (t EventType) Known() bool { return t.row() != nil }

// HasTool reports whether t is about one tool call. Only these events use matchers.
func (t EventType) HasTool() bool {
	return t == PreToolUse || t == PostToolUse || t == ToolError
}

// Canonical returns the event that t names, also if t is another system's name for it. It
// returns an unknown name unchanged.
func (t EventType) Canonical() EventType {
	if t.Known() {
		return t
	}
	for _, seed := range seedNames {
		if string(t) == seed.name {
			return seed.event
		}
	}
	return t
}

// seedNames are other systems' names of events. The clients in other languages have the
// same table, and a test in bus/agent/sdktest compares them.
var seedNames = [...]struct {
	name  string
	event EventType
}{
	{"BEFORE_LLM_CALL", BeforeLLMCall},
	{"AFTER_LLM_CALL", AfterLLMCall},
	{"BEFORE_TOOL_EXECUTION", PreToolUse},
	{"AFTER_TOOL_EXECUTION", PostToolUse},
	{"ON_TOOL_ERROR", ToolError},
	{"BEFORE_FINAL_RESPONSE", BeforeFinalResponse},
	{"QUERY_END", QueryEnd},
	{"Stop", BeforeFinalResponse},
}

// SeedNames lists other systems' event names. [EventType.Canonical] translates them.
func SeedNames() []string {
	names := make([]string, 0, len(seedNames))
	for _, seed := range seedNames {
		names = append(names, seed.name)
	}
	return names
}

// ParseEventType returns the event that s names, also by another system's name. Its error lists
// the valid names.
func ParseEventType(s string) (EventType, error) {
	if t := EventType(s).Canonical(); t.Known() {
		return t, nil
	}
	names := make([]string, 0, len(EventTypes()))
	for _, t := range EventTypes() {
		names = append(names, string(t))
	}
	return "", fmt.Errorf("unknown event %q; write one of %s", s, strings.Join(names, ", "))
}

// An Event is one moment of one agent, in the canonical form that handlers read. It is flat.
// Members that an event does not have are absent, and readers ignore unknown members, so that
// an old peer can read a new event.
type Event struct {
	// HookType is the moment. Workers set it from the subject, so that a body cannot claim
	// another event.
	HookType EventType `json:"hook_type"`
	// EventID is the event's UUIDv7. Retries and acknowledgements refer to it.
	EventID string `json:"event_id,omitzero"`
	// SessionID is the runtime's session. Workers set it from the header.
	SessionID string `json:"session_id,omitzero"`
	// OrchestratorID is the program that runs the agent; empty if there is no such program.
	OrchestratorID string `json:"orchestrator_id,omitzero"`
	// AgentID is the agent's identity. Workers set it from the subject.
	AgentID string `json:"agent_id,omitzero"`
	// Runtime is the agent's runtime, such as "claude" or "generic".
	Runtime string `json:"runtime,omitzero"`
	// Timestamp is when the shim saw the moment.
	Timestamp time.Time `json:"timestamp,omitzero"`
	// ToolName is the tool as its runtime calls it; empty if the event is not about a tool.
	ToolName string `json:"tool_name,omitzero"`
	// ToolKind is the runtime-independent kind: shell, file.write, file.read, mcp, …
	ToolKind string `json:"tool_kind,omitzero"`
	// ToolArgs is a JSON object with the facts of the call under names that are the same in
	// every runtime (see [ToolFacts]). It omits unknown facts.
	ToolArgs jsontext.Value `json:"tool_args,omitzero"`
	// Action has the facts of the call, for hooks with needs: [action] (see package action). Workers
	// set it; what an agent sends is removed.
	Action jsontext.Value `json:"action,omitzero"`
	// ToolInput is the JSON object of the tool's arguments.
	ToolInput jsontext.Value `json:"tool_input,omitzero"`
	// ToolOutput is the tool's output, any JSON value.
	ToolOutput jsontext.Value `json:"tool_output,omitzero"`
	// ToolUseID is the runtime's id of the call.
	ToolUseID string `json:"tool_use_id,omitzero"`
	// Error is the tool's error, on ToolError.
	Error string `json:"error,omitzero"`
	// Message is the model's message, on AfterLLMCall and BeforeFinalResponse:
	// a string or an object.
	Message jsontext.Value `json:"message,omitzero"`
	// Prompt is the user's text, on UserPromptSubmit.
	Prompt string `json:"prompt,omitzero"`
	// Response is the final response of the query, on QueryEnd.
	Response jsontext.Value `json:"response,omitzero"`
	// Iteration counts the model calls of the query, from 1; 0: unknown.
	Iteration int `json:"iteration,omitzero"`
	// HistoryRef locates the conversation, for hooks that need it. It names a file on the
	// agent's machine, or parts in the fabric's store, which workers join before they call a
	// hook (see [HistoryParts]).
	HistoryRef string `json:"history_ref,omitzero"`
	// History is the conversation, a list of [Message], for hooks that need it. If HistoryRef
	// names parts, History holds the messages after them.
	History jsontext.Value `json:"history,omitzero"`
	// Flags is a JSON object with the agent's flags. Effects set them.
	Flags jsontext.Value `json:"flags,omitzero"`
	// Cwd is the agent's working directory.
	Cwd string `json:"cwd,omitzero"`
	// Labels are free-form facts about the agent.
	Labels map[string]string `json:"labels,omitzero"`
	// Native is the runtime's own payload. It is present only if a hook needs it.
	Native string `json:"native,omitzero"`
	// Mute reports that the agent cannot read anything from the answer. It travels as a header.
	Mute bool `json:"-"`
	// MidTurn reports that the answer cannot restart the agent's turn. It travels as a header.
	MidTurn bool `json:"-"`
}

// The labels that a shim sets when a session starts. Status lists show them, so that operators
// see which hosts stay silent.
const (
	// LabelHost is the name of the agent's machine.
	LabelHost = "host"
	// LabelVersion is the version of the agent's runtime.
	LabelVersion = "runtime_version"
)

// A Mismatch is the error of an event whose body and header name different tools. One of them
// is forged, so the fabric trusts no hook's opinion about it.
type Mismatch struct{ Header, Body string }

// Error names both tools.
func (m *Mismatch) Error() string {
	return fmt.Sprintf("the event's body names the tool %q but its Hook-Tool header %q; send the same name in both", m.Body, m.Header)
}

// ReadEvent reads an event's JSON without checking whose event it is. Use [DecodeEvent] for
// events from the bus.
func ReadEvent(data []byte) (*Event, error) {
	if k := kindOf(data); k != '{' {
		return nil, fmt.Errorf("the event is %s; it must be a JSON object", KindName(k))
	}
	e := new(Event)
	if err := Unmarshal(data, e); err != nil {
		return nil, sentence("the event", err)
	}
	e.HookType = e.HookType.Canonical()
	return e, nil
}

// UnknownAgent stands for the agent of an unreadable event. The fail-closed hooks of every
// agent guard such an event.
const UnknownAgent = "*"

// Glance returns the readable start of an unreadable event: the type, agent, session and tool
// that precede the fault.
func Glance(data []byte) Event {
	var e Event
	into := map[string]*string{"agent_id": &e.AgentID, "session_id": &e.SessionID, "tool_name": &e.ToolName}
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return e
	}
	for {
		name, err := dec.ReadToken()
		if err != nil || name.Kind() != '"' {
			return e
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return e
		}
		var s string
		if value.Kind() != '"' || Unmarshal(value, &s) != nil {
			continue
		}
		if t := EventType(s).Canonical(); key == "hook_type" && e.HookType == "" && t.Known() {
			e.HookType = t
		} else if at := into[key]; at != nil && *at == "" {
			*at = s // the first of two is as good as the other
		}
	}
}

// DecodeEvent reads an event's JSON and replaces the agent, session, event and id that the body
// claims by those of the subject and the headers. If the body names another tool than r, it
// returns a [*Mismatch].
func DecodeEvent(body []byte, r Routing) (*Event, error) {
	e, err := ReadEvent(body)
	if err != nil {
		return nil, err
	}
	// Counting first is fast, and hardly any event has that many brackets.
	if bytes.Count(body, []byte("["))+bytes.Count(body, []byte("{")) > MaxDepth && depth(body) > MaxDepth {
		return nil, fmt.Errorf("the event nests deeper than %d levels; flatten it", MaxDepth)
	}
	if e.ToolName != "" && e.ToolName != r.Tool {
		return nil, &Mismatch{Header: r.Tool, Body: e.ToolName}
	}
	if k := e.ToolInput.Kind(); k == 'n' {
		e.ToolInput = nil
	} else if len(e.ToolInput) > 0 && k != '{' {
		return nil, fmt.Errorf("the event's tool_input is %s; it must be a JSON object", KindName(k))
	}
	if k := e.ToolArgs.Kind(); k == 'n' {
		e.ToolArgs = nil
	} else if len(e.ToolArgs) > 0 && k != '{' {
		return nil, fmt.Errorf("the event's tool_args is %s; it must be a JSON object", KindName(k))
	}
	if k := e.History.Kind(); k == 'n' {
		e.History = nil
	} else if len(e.History) > 0 && k != '[' {
		return nil, fmt.Errorf("the event's history is %s; it must be a list of messages", KindName(k))
	}
	if k := e.Flags.Kind(); k == 'n' {
		e.Flags = nil
	} else if len(e.Flags) > 0 && k != '{' {
		return nil, fmt.Errorf("the event's flags are %s; they must be a JSON object", KindName(k))
	}
	e.HookType, e.AgentID, e.SessionID, e.ToolName = r.Event, r.Agent, r.Session, r.Tool
	e.EventID, e.Action = r.ID, nil
	return e, nil
}
