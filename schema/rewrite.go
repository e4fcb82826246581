package schema

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Rewritten returns the rewrite in v for an event of type t: the new input, output, message or
// response, or nil. At the Post events and QueryEnd, a stop's value is a rewrite; at other
// events it is not.
func (v *Verdict) Rewritten(t EventType) jsontext.Value {
	switch t.Rewrites() {
	case RewriteInput:
		return v.UpdatedInput
	case RewriteOutput:
		if v.Value != nil { // of a stop, which is the last value that counts
			return v.Value
		}
		return v.UpdatedOutput
	case RewriteMessage:
		if v.Decision != Stop {
			return v.Value
		}
	case RewriteResponse:
		return v.Value
	}
	return nil
}

// Apply puts a rewrite into e, so that the next hook reads it.
func (e *Event) Apply(rewrite jsontext.Value) {
	switch e.HookType.Rewrites() {
	case RewriteInput:
		e.ToolInput = rewrite
		e.refresh()
	case RewriteOutput:
		e.ToolOutput = rewrite
	case RewriteMessage:
		e.Message = rewrite
	case RewriteResponse:
		e.Response = rewrite
	}
}

// refresh derives the facts of a rewritten call again, because a policy must judge the
// call that will be made. Facts that are unknown now are removed.
func (e *Event) refresh() {
	if len(e.ToolArgs) == 0 || e.ToolKind == KindMCP {
		return // a call's server and tool do not depend on its input
	}
	e.ToolArgs = nil
	if kind, args := ToolFacts(e.Runtime, e.ToolName, e.ToolInput); kind == e.ToolKind {
		e.ToolArgs = args
	}
}

// Rewritten returns a copy of e with the rewrite, and its JSON. It does not change e.
func (e *Event) Rewritten(rewrite jsontext.Value) (*Event, []byte, error) {
	next := *e
	next.Apply(rewrite)
	body, err := Marshal(&next)
	if err != nil {
		return nil, nil, fmt.Errorf("the rewritten event cannot be encoded: %w", err)
	}
	return &next, body, nil
}

// RewriteBody returns an event's body with the rewrite, for the next batch.
func RewriteBody(body []byte, r Routing, rewrite jsontext.Value) ([]byte, error) {
	e, err := DecodeEvent(body, r)
	if err != nil {
		return nil, err
	}
	_, out, err := e.Rewritten(rewrite)
	return out, err
}
