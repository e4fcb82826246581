package schema

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// Rewritten reports the rewrite that v carries for an event of type t: the new
// input, output, message or response, or nil. A stop's value is no rewrite.
func (v *Verdict) Rewritten(t EventType) jsontext.Value {
	switch t.Rewrites() {
	case RewriteInput:
		return v.UpdatedInput
	case RewriteOutput:
		return v.UpdatedOutput
	case RewriteMessage, RewriteResponse:
		if v.Decision != Stop {
			return v.Value
		}
	}
	return nil
}

// Apply puts a rewrite into e, so that the next hook sees it.
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

// refresh tells the facts of a rewritten call anew: a policy must judge the call
// that will be made. What can not be told any more is absent.
func (e *Event) refresh() {
	if len(e.ToolArgs) == 0 || e.ToolKind == KindMCP {
		return // a call's server and tool do not depend on its input
	}
	e.ToolArgs = nil
	if kind, args := ToolFacts(e.Runtime, e.ToolName, e.ToolInput); kind == e.ToolKind {
		e.ToolArgs = args
	}
}

// Rewritten is e with a rewrite put in, and its JSON. What it shares with e is
// not changed.
func (e *Event) Rewritten(rewrite jsontext.Value) (*Event, []byte, error) {
	next := *e
	next.Apply(rewrite)
	body, err := Marshal(&next)
	if err != nil {
		return nil, nil, fmt.Errorf("the rewritten event can not be encoded: %w", err)
	}
	return &next, body, nil
}

// RewriteBody is the event body with a rewrite put in, for the next batch.
func RewriteBody(body []byte, r Routing, rewrite jsontext.Value) ([]byte, error) {
	e, err := DecodeEvent(body, r)
	if err != nil {
		return nil, err
	}
	_, out, err := e.Rewritten(rewrite)
	return out, err
}
