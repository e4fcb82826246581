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

// The moments of an agent's life that hooks may see.
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

// EventTypes lists every event in the order in which an agent meets them.
func EventTypes() []EventType {
	return []EventType{SessionStart, UserPromptSubmit, BeforeLLMCall, AfterLLMCall, PreToolUse,
		PostToolUse, ToolError, BeforeFinalResponse, QueryEnd, SessionEnd}
}

// Known reports whether t is one of the ten events.
func (t EventType) Known() bool { return t.row() != nil }

// HasTool reports whether t is about one tool call, so that matchers apply.
func (t EventType) HasTool() bool {
	return t == PreToolUse || t == PostToolUse || t == ToolError
}

// ParseEventType returns the event named s, or an error that lists the names.
func ParseEventType(s string) (EventType, error) {
	if t := EventType(s); t.Known() {
		return t, nil
	}
	names := make([]string, 0, len(EventTypes()))
	for _, t := range EventTypes() {
		names = append(names, string(t))
	}
	return "", fmt.Errorf("unknown event %q; write one of %s", s, strings.Join(names, ", "))
}

// An Event is one moment of one agent, in the canonical form that handlers
// see. It is flat; fields that an event does not have are absent, and unknown
// fields are ignored, so that an old peer can read a new one.
type Event struct {
	// HookType is the moment. Workers set it from the subject, so that a body
	// can not claim another one.
	HookType EventType `json:"hook_type"`
	// EventID is the UUIDv7 under which the event is asked, retried and claimed.
	EventID string `json:"event_id,omitzero"`
	// SessionID is the runtime's session. Workers set it from the header.
	SessionID string `json:"session_id,omitzero"`
	// OrchestratorID names who runs the agent, if anybody does.
	OrchestratorID string `json:"orchestrator_id,omitzero"`
	// AgentID is the agent. Workers set it from the subject: it is the identity.
	AgentID string `json:"agent_id,omitzero"`
	// Runtime is the agent's runtime, such as "claude" or "generic".
	Runtime string `json:"runtime,omitzero"`
	// Timestamp is when the shim saw the moment.
	Timestamp time.Time `json:"timestamp,omitzero"`
	// ToolName is the tool as its runtime calls it; empty where no tool is about.
	ToolName string `json:"tool_name,omitzero"`
	// ToolKind is the runtime-independent kind: shell, file.write, file.read, mcp, …
	ToolKind string `json:"tool_kind,omitzero"`
	// ToolArgs is a JSON object with what policies for all runtimes need to know of
	// the call: the same facts under the same names in every runtime (see
	// [ToolFacts]). A fact that is not known is absent.
	ToolArgs jsontext.Value `json:"tool_args,omitzero"`
	// ToolInput is the JSON object the tool is (to be) called with.
	ToolInput jsontext.Value `json:"tool_input,omitzero"`
	// ToolOutput is whatever the tool returned.
	ToolOutput jsontext.Value `json:"tool_output,omitzero"`
	// ToolUseID is the runtime's id of the call.
	ToolUseID string `json:"tool_use_id,omitzero"`
	// Error is what went wrong, on ToolError.
	Error string `json:"error,omitzero"`
	// Message is the model's message, on AfterLLMCall and BeforeFinalResponse:
	// a string or an object.
	Message jsontext.Value `json:"message,omitzero"`
	// Prompt is what the user wrote, on UserPromptSubmit.
	Prompt string `json:"prompt,omitzero"`
	// Response is what the query ended with, on QueryEnd.
	Response jsontext.Value `json:"response,omitzero"`
	// Iteration counts the model calls of the query, from 1; 0 is unknown.
	Iteration int `json:"iteration,omitzero"`
	// HistoryRef says where the conversation lies, for hooks that need it: a file on
	// the agent's machine, or parts in the fabric's store, which workers put together
	// before they call a hook (see [HistoryParts]).
	HistoryRef string `json:"history_ref,omitzero"`
	// History is the conversation, a list of [Message], for hooks that need it; where
	// HistoryRef names parts it is what comes after them.
	History jsontext.Value `json:"history,omitzero"`
	// Flags is a JSON object with the agent's flags, which effects set.
	Flags jsontext.Value `json:"flags,omitzero"`
	// Cwd is the agent's working directory.
	Cwd string `json:"cwd,omitzero"`
	// Labels are free facts about the agent.
	Labels map[string]string `json:"labels,omitzero"`
	// Native is the runtime's own payload, only if some hook needs it.
	Native string `json:"native,omitzero"`
	// Mute: the answer can not tell the agent anything. It travels as a header.
	Mute bool `json:"-"`
}

// Labels that a shim sets when a session starts, so that it can be seen which
// agents are where, and which hosts stay silent.
const (
	// LabelHost is the name of the agent's machine.
	LabelHost = "host"
	// LabelVersion is the version of the agent's runtime.
	LabelVersion = "runtime_version"
)

// A Mismatch says that an event's body names another tool than its header:
// somebody forged one of them, so no hook's opinion about it can be trusted.
type Mismatch struct{ Header, Body string }

func (m *Mismatch) Error() string {
	return fmt.Sprintf("the event's body names the tool %q but its Hook-Tool header %q; send the same name in both", m.Body, m.Header)
}

// ReadEvent reads an event's JSON as it is, before anybody has said whose it is.
func ReadEvent(data []byte) (*Event, error) {
	if k := jsontext.Value(data).Kind(); k != '{' {
		return nil, fmt.Errorf("the event is %s; it must be a JSON object", KindName(k))
	}
	e := new(Event)
	if err := Unmarshal(data, e); err != nil {
		return nil, sentence("the event", err)
	}
	return e, nil
}

// UnknownAgent stands for the agent of an event that can not be read so far: any
// agent's guard guards it.
const UnknownAgent = "*"

// Glance is what can be seen of an event that can not be read, or not whole:
// the type, agent, session and tool that stand before the fault.
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
		if key == "hook_type" && e.HookType == "" && EventType(s).Known() {
			e.HookType = EventType(s)
		} else if at := into[key]; at != nil && *at == "" {
			*at = s // of two, nobody knows which is meant; the first is as good
		}
	}
}

// DecodeEvent reads an event's JSON and puts the routing facts over what the
// body claims: agent, session, event and id come from the subject and the
// headers. A body that names another tool than r does is a [*Mismatch].
func DecodeEvent(body []byte, r Routing) (*Event, error) {
	e, err := ReadEvent(body)
	if err != nil {
		return nil, err
	}
	// Counted first, which takes no time: hardly any event has so many.
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
	e.EventID = r.ID
	return e, nil
}
