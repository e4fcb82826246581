package model

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// part names a part of an event that hooks may rewrite.
type part int

const (
	nothing part = iota
	input
	output
	message
	response
)

// rule is an event's row in the contract's table.
type rule struct {
	// decisions may be taken here; no opinion always may.
	decisions []schema.Decision
	// rewrite is the part that hooks may replace.
	rewrite part
	// messageStop requires that a stop's value is a message. At other events it is a tool's result
	// or a response, which may be anything.
	messageStop bool
	// chain: the first terminal result ends it. Elsewhere only a stop does, and
	// nothing before it is dropped.
	chain bool
	// blocking is the decision of a failure policy that denies at this event; None means only a
	// record.
	blocking schema.Decision
}

func decisions(d ...schema.Decision) []schema.Decision { return d }

// ruleOf returns an event's row in the contract's table.
func ruleOf(t schema.EventType) rule {
	const deny, fail, stop, retry = schema.Deny, schema.Fail, schema.Stop, schema.Retry
	switch t {
	case schema.UserPromptSubmit:
		return rule{decisions: decisions(deny), chain: true, blocking: deny}
	case schema.BeforeLLMCall:
		return rule{decisions: decisions(fail, stop), messageStop: true, chain: true, blocking: fail}
	case schema.AfterLLMCall, schema.BeforeFinalResponse:
		return rule{decisions: decisions(retry, fail, stop), rewrite: message, messageStop: true, chain: true, blocking: fail}
	case schema.PreToolUse:
		return rule{decisions: decisions(schema.Allow, schema.Ask, deny, fail, stop), rewrite: input, chain: true, blocking: deny}
	case schema.PostToolUse, schema.ToolError:
		return rule{decisions: decisions(deny, fail, stop), rewrite: output}
	case schema.QueryEnd:
		return rule{decisions: decisions(fail, stop), rewrite: response}
	}
	return rule{} // the session's ends: nothing but continue
}

func (r rule) permits(d schema.Decision) bool { return slices.Contains(r.decisions, d) }

// terminal reports whether a decision ends the event's hooks: a deny, fail, stop or retry if they
// are a chain, and a stop always.
func (r rule) terminal(d schema.Decision) bool {
	return r.chain && decisive(d) || d == schema.Stop && r.permits(d)
}

// decisive decisions are the ones that hold something up or end it.
func decisive(d schema.Decision) bool {
	switch d {
	case schema.Deny, schema.Fail, schema.Stop, schema.Retry:
		return true
	}
	return false
}

// rank orders the decisions that are compared: in a chain ask, allow, none; at the Post events
// fail, stop, deny, none. The first is the greatest.
func rank(d schema.Decision) int {
	switch d {
	case schema.Allow:
		return 1
	case schema.Ask:
		return 2
	case schema.Deny:
		return 3
	case schema.Stop:
		return 4
	case schema.Fail:
		return 5
	}
	return 0
}

// absent reports whether a part is missing or null.
func absent(v jsontext.Value) bool { return len(v) == 0 || v.Kind() == 'n' }

// isMessage reports whether v is a model's message: a string, or an object whose role is not that
// of another participant.
func isMessage(v jsontext.Value) bool {
	if v.Kind() != '{' {
		return v.Kind() == '"'
	}
	var members map[string]any
	if schema.Unmarshal(v, &members) != nil {
		return true
	}
	role := members["role"]
	return role != "system" && role != "user" && role != "tool"
}
