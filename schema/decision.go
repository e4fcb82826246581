package schema

import "slices"

// Decision is what a hook, or the fold of all hooks, says.
type Decision string

// The decisions. Which of them an event knows is in its row of [EventType.Decisions].
const (
	// None is no opinion. On the wire of a verdict it is spelled "continue".
	None     Decision = ""
	Continue Decision = "continue"
	Allow    Decision = "allow"
	Ask      Decision = "ask"
	Deny     Decision = "deny"
	Retry    Decision = "retry"
	Stop     Decision = "stop"
	Fail     Decision = "fail"
	// Reject is how some systems spell fail; no event lists it, and no verdict says it.
	Reject Decision = "reject"
)

// Plain is d in the event's own words: a reject is a fail where the event knows
// one. Where it does not, it stays a word that the event refuses.
func (t EventType) Plain(d Decision) Decision {
	if d == Reject && t.Permits(Fail) {
		return Fail
	}
	return d
}

// ValueKind says what type a value has at an event.
type ValueKind int

// The kinds of values. NoValue: the event takes none.
const (
	NoValue ValueKind = iota
	MessageValue
	ToolResultValue
)

// Rewrite says which part of an event its hooks may rewrite.
type Rewrite int

// The parts that can be rewritten. NoRewrite: the event has none.
const (
	NoRewrite Rewrite = iota
	RewriteInput
	RewriteOutput
	RewriteMessage
	RewriteResponse
)

// traits is an event's row in the table of what may be decided there.
type traits struct {
	decisions []Decision
	stop      ValueKind
	rewrite   Rewrite
	// terminal: the first decisive result ends the chain. Otherwise nothing is
	// ever dropped and the greatest decision wins.
	terminal bool
	// blocking is what a failed fail-closed hook decides here; None: an error record.
	blocking Decision
}

// The rows of the table, one per event.
var (
	sessionStartRow        = traits{decisions: []Decision{Continue}}
	sessionEndRow          = traits{decisions: []Decision{Continue}}
	userPromptSubmitRow    = traits{decisions: []Decision{Continue, Deny}, terminal: true, blocking: Deny}
	beforeLLMCallRow       = traits{decisions: []Decision{Continue, Fail, Stop}, stop: MessageValue, terminal: true, blocking: Fail}
	afterLLMCallRow        = traits{decisions: []Decision{Continue, Retry, Fail, Stop}, stop: MessageValue, rewrite: RewriteMessage, terminal: true, blocking: Fail}
	preToolUseRow          = traits{decisions: []Decision{Continue, Allow, Ask, Deny, Fail, Stop}, stop: ToolResultValue, rewrite: RewriteInput, terminal: true, blocking: Deny}
	postToolUseRow         = traits{decisions: []Decision{Continue, Deny, Fail}, rewrite: RewriteOutput}
	toolErrorRow           = traits{decisions: []Decision{Continue, Deny, Fail}, rewrite: RewriteOutput}
	beforeFinalResponseRow = traits{decisions: []Decision{Continue, Retry, Fail, Stop}, stop: MessageValue, rewrite: RewriteMessage, terminal: true, blocking: Fail}
	queryEndRow            = traits{decisions: []Decision{Continue, Fail}, rewrite: RewriteResponse}
	noRow                  = traits{}
)

// row is t's row of the table; nil: nobody knows such an event. It is on the
// path of every hook of every call, where a switch is cheaper than a map.
func (t EventType) row() *traits {
	switch t {
	case SessionStart:
		return &sessionStartRow
	case SessionEnd:
		return &sessionEndRow
	case UserPromptSubmit:
		return &userPromptSubmitRow
	case BeforeLLMCall:
		return &beforeLLMCallRow
	case AfterLLMCall:
		return &afterLLMCallRow
	case PreToolUse:
		return &preToolUseRow
	case PostToolUse:
		return &postToolUseRow
	case ToolError:
		return &toolErrorRow
	case BeforeFinalResponse:
		return &beforeFinalResponseRow
	case QueryEnd:
		return &queryEndRow
	}
	return nil
}

// traits is t's row of the table. An event that nobody knows permits nothing
// and blocks nothing: whoever takes events in refuses it before it gets here.
func (t EventType) traits() *traits {
	if row := t.row(); row != nil {
		return row
	}
	return &noRow
}

// Decisions lists the decisions that hooks may take at t.
func (t EventType) Decisions() []Decision { return slices.Clone(t.traits().decisions) }

// Permits reports whether d may be decided at t. No opinion always may.
func (t EventType) Permits(d Decision) bool {
	return d == None || slices.Contains(t.traits().decisions, d)
}

// StopValue says what type of value a stop must carry at t.
func (t EventType) StopValue() ValueKind { return t.traits().stop }

// Rewrites says what hooks of t may rewrite.
func (t EventType) Rewrites() Rewrite { return t.traits().rewrite }

// Chains reports whether the first decisive result at t ends the chain. Where
// it does not (the Post events, QueryEnd and the session's ends) nothing is ever dropped.
func (t EventType) Chains() bool { return t.traits().terminal }

// Blocking is what "deny" means when a failure policy says it at t: deny,
// fail, or None where a failure only leaves a record.
func (t EventType) Blocking() Decision { return t.traits().blocking }

// Terminal reports whether d ends the chain at t.
func (t EventType) Terminal(d Decision) bool {
	return t.traits().terminal && (d == Deny || d == Fail || d == Stop || d == Retry)
}

// ReadonlyByDefault reports whether hooks of t that do not say do not rewrite.
func (t EventType) ReadonlyByDefault() bool {
	r := t.traits().rewrite
	return r != RewriteInput && r != RewriteMessage
}
