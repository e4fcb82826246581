package schema

import "slices"

// Off is the mode of a pack that is not used.
const Off Mode = "off"

// A Pack is a group of rules that a configuration uses. Its rules become hooks with the builtin
// [RulesHandler], see [RuleSet].
type Pack struct {
	// Name is the name of a shipped pack, or that of a file's hooks.
	Name string `json:"name"`
	// File is the file of the rules, relative to the configuration; empty: the pack is shipped.
	File string `json:"file,omitzero"`
	// Mode is that of all rules.
	Mode Mode `json:"mode,omitzero"`
	// Exclude lists the ids of rules that are not used, Shadow those that are only watched.
	Exclude []string `json:"exclude,omitzero"`
	Shadow  []string `json:"shadow,omitzero"`
	// Unparsed is the answer to calls that cannot be parsed, Dynamic that to commands that are
	// known only at run time.
	Unparsed RuleAction `json:"unparsed,omitzero"`
	Dynamic  RuleAction `json:"dynamic,omitzero"`
}

// A RuleException lets agents do what a rule refuses, for a time.
type RuleException struct {
	// Rule is the id of the rule.
	Rule string `json:"rule"`
	// Agents is a glob for the ids of agents; empty: all.
	Agents string `json:"agents,omitzero"`
	// Until is the last day, as 2027-01-31 in UTC.
	Until string `json:"until"`
	// Owner is who answers for the exception.
	Owner string `json:"owner"`
}

// A RuleAction is what a rule does with an event that it matches.
type RuleAction string

// The actions. The last two are only for calls that cannot be parsed, and for commands that are known
// only at run time.
const (
	RuleDeny   RuleAction = "deny"
	RuleAsk    RuleAction = "ask"
	RuleWarn   RuleAction = "warn"
	RuleShadow RuleAction = "shadow"
	RuleOff    RuleAction = "off"
)

// Decision returns what an action decides at an event. A warning decides nothing.
func (a RuleAction) Decision(t EventType) Decision {
	switch a {
	case RuleDeny:
		return t.Refusal()
	case RuleAsk:
		return Ask
	}
	return None
}

// Fits reports whether a rule can do a at an event.
func (a RuleAction) Fits(t EventType) bool {
	switch a {
	case RuleDeny:
		return t.Refusal() != None
	case RuleAsk:
		return t.Permits(Ask)
	}
	return true
}

// A Rule is one rule of a pack. It matches an event if its condition holds and one of its patterns is
// found. A rule without either matches nothing.
type Rule struct {
	// ID is unique in a configuration.
	ID    string `json:"id"`
	Title string `json:"title"`
	// Severity is low, medium, high or critical.
	Severity string `json:"severity,omitzero"`
	// Keywords are texts of which the event must have one, in any case, before the condition is
	// evaluated; none: the condition is always evaluated.
	Keywords []string `json:"keywords,omitzero"`
	// When is a condition in CEL; empty: none.
	When string `json:"when,omitzero"`
	// Patterns are regular expressions on fields; none: the condition alone decides.
	Patterns []RulePattern `json:"patterns,omitzero"`
	Action   RuleAction    `json:"action"`
	// Message says what to do instead.
	Message string `json:"message"`
}

// A RulePattern is a set of regular expressions on one field.
type RulePattern struct {
	// Field is one of [RuleFields].
	Field string `json:"field"`
	// Any are regular expressions, of which one must be found.
	Any []string `json:"any"`
}

// ruleFields are the fields that patterns search: all texts in them, at any depth.
var ruleFields = []string{"tool_input", "tool_output", "error", "prompt", "message", "response", "commands"}

// RuleFields returns the fields that patterns search. All are fields of the event, except commands: the
// commands of a shell with their arguments, one per line.
func RuleFields() []string { return slices.Clone(ruleFields) }

// RulesHandler is the name of the builtin that runs rules.
const RulesHandler = "rules"

// A RuleSet is the rules of one hook. It is the type of the options of the builtin [RulesHandler].
type RuleSet struct {
	Rules      []Rule          `json:"rules"`
	Exceptions []RuleException `json:"exceptions,omitzero"`
	// Unparsed and Dynamic are those of the [Pack]; empty: no answer.
	Unparsed RuleAction `json:"unparsed,omitzero"`
	Dynamic  RuleAction `json:"dynamic,omitzero"`
}
