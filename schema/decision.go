package schema

import "slices"

// Decision is the opinion of a hook, or of the fold of all hooks.
type Decision string

// The decisions. [EventType.Decisions] lists those that an event permits.
const (
	// None is no opinion. A verdict spells it "continue" on the wire.
	None     Decision = ""
	Continue Decision = "continue"
	Allow    Decision = "allow"
	Ask      Decision = "ask"
	Deny     Decision = "deny"
	Retry    Decision = "retry"
	Stop     Decision = "stop"
	Fail     Decision = "fail"
	// Reject is a synonym of fail in other systems. No event permits it, and no verdict carries
	// it.
	Reject Decision = "reject"
)

// Plain returns d in the event's own words. A reject becomes a fail if the event permits fail.
// Otherwise it stays a word that the event refuses.
func (t EventType) Plain(d Decision) Decision {
	if d == Reject && t.Permits(Fail) {
		return Fail
	}
	return d
}

// ValueKind is the type of a stop's value at an event.
type ValueKind int

// The kinds of values. NoValue: the event takes no value.
const (
	NoValue ValueKind = iota
	MessageValue
	ToolResultValue
	ResponseValue
)

// Rewrite is the part of an event that its hooks may rewrite.
type Rewrite int

// The parts that hooks can rewrite. NoRewrite: hooks of the event rewrite nothing.
const (
	NoRewrite Rewrite = iota
	RewriteInput
	RewriteOutput
	RewriteMessage
	RewriteResponse
)

// traits is an event's row in the table of decisions.
type traits struct {
	decisions []Decision
	stop      ValueKind
	rewrite   Rewrite
	// terminal: the first decisive result ends the chain. Otherwise only a stop
	// ends it, nothing is dropped and the greatest decision wins.
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
	postToolUseRow         = traits{decisions: []Decision{Continue, Deny, Fail, Stop}, stop: ToolResultValue, rewrite: RewriteOutput}
	toolErrorRow           = traits{decisions: []Decision{Continue, Deny, Fail, Stop}, stop: ToolResultValue, rewrite: RewriteOutput}
	beforeFinalResponseRow = traits{decisions: []Decision{Continue, Retry, Fail, Stop}, stop: MessageValue, rewrite: RewriteMessage, terminal: true, blocking: Fail}
	queryEndRow            = traits{decisions: []Decision{Continue, Fail, Stop}, stop: ResponseValue, rewrite: RewriteResponse}
	noRow                  = traits{}
)

// row returns t's row of the table; nil: t is unknown. Every hook of every call uses it,
// and a switch is cheaper than a map.
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

// traits returns t's row of the table. An unknown event permits nothing and blocks
// nothing, because readers of events reject it earlier.
func (t EventType) traits() *traits {
	if row := t.row(); row != nil {
		return row
	}
	return &noRow
}

// Decisions lists the decisions that hooks may return at t.
func (t EventType) Decisions() []Decision { return slices.Clone(t.traits().decisions) }

// Permits reports whether a hook may return d at t. Every event permits None.
func (t EventType) Permits(d Decision) bool {
	return d == None || slices.Contains(t.traits().decisions, d)
}

// StopValue returns the type of the value that a stop must carry at t.
func (t EventType) StopValue() ValueKind { return t.traits().stop }

// Rewrites returns the part that hooks of t may rewrite.
func (t EventType) Rewrites() Rewrite { return t.traits().rewrite }

// Chains reports whether the first decisive result at t ends the chain and drops the rewrites
// before it. At the Post events, QueryEnd and the session's ends only a stop ends the chain,
// and the fold keeps all earlier results.
func (t EventType) Chains() bool { return t.traits().terminal }

// Blocking returns the decision of a fail-closed hook that fails at t: deny, fail, or None
// where a failure is only recorded.
func (t EventType) Blocking() Decision { return t.traits().blocking }

// Refusal returns the decision of a hook that refuses at t: [Deny], or what blocks there. None: nothing
// can be refused.
func (t EventType) Refusal() Decision {
	if t.Permits(Deny) {
		return Deny
	}
	return t.Blocking()
}

// Terminal reports whether a hook that decides d ends the chain at t.
func (t EventType) Terminal(d Decision) bool {
	switch d {
	case Stop:
		return t.traits().stop != NoValue
	case Deny, Fail, Retry:
		return t.traits().terminal
	}
	return false
}

// ReadonlyByDefault reports whether a hook of t is readonly unless its configuration says
// otherwise.
func (t EventType) ReadonlyByDefault() bool {
	r := t.traits().rewrite
	return r != RewriteInput && r != RewriteMessage
}
