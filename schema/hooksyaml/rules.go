package hooksyaml

import (
	"fmt"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json"
	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
)

var (
	ruleKeys    = []string{"id", "title", "severity", "events", "mode", "keywords", "when", "patterns", "action", "message", "references", "cases"}
	patternKeys = []string{"field", "any"}
	caseKeys    = []string{"deny", "ask", "warn", "pass"}
	severities  = []string{"low", "medium", "high", "critical"}
	ruleName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)
)

// A RuleFile is a valid file of rules.
type RuleFile struct {
	Title string
	Rules []PackRule
}

// A PackRule is a rule with what only files have.
type PackRule struct {
	schema.Rule
	Events     []schema.EventType
	Mode       schema.Mode
	References []string
	// Cases are the rule's own tests.
	Cases []RuleCase
}

// A RuleCase is an event with what the rule must do with it.
type RuleCase struct {
	// Want is the action; empty: the rule does not match.
	Want schema.RuleAction
	// Line is its line in the file.
	Line int
	// Event is the event as JSON; its type and the folder may be missing. Command is instead the command of a shell.
	Event   []byte
	Command string
}

// ReadRules reads a file of rules. It uses name only in faults. Its error has the type [Faults].
func ReadRules(name string, data []byte, o Options) (*RuleFile, error) {
	r := newReader(name, data, o)
	f := &RuleFile{}
	if root := r.parse(r.source.text); root != nil {
		before := len(r.faults)
		r.tree(root)
		if len(r.faults) == before {
			r.ruleFile(f, root)
		}
	}
	if len(r.faults) > 0 {
		return nil, r.report()
	}
	return f, nil
}

func (r *reader) ruleFile(f *RuleFile, root *yaml.Node) {
	entries, _ := r.mapping(root, "a file of rules", "write rules: and a list of rules")
	var foreign []entry
	for _, e := range entries {
		switch {
		case e.key == "title":
			f.Title, _ = r.word(e.value, "title", "write what the rules are about")
		case e.key == "rules" && e.value.Kind == yaml.SequenceNode:
			lines := map[string]int{}
			for _, n := range e.value.Content {
				n = deref(n)
				rule := r.rule(n)
				if line, twice := lines[rule.ID]; twice && rule.ID != "" {
					r.fault(n, fmt.Sprintf("the rule %s appears twice; it is already on line %d", quote(rule.ID), line), "give one of them another id")
				}
				lines[rule.ID] = n.Line
				f.Rules = append(f.Rules, rule)
			}
		case e.key == "rules":
			r.fault(e.value, fmt.Sprintf("rules is %s; it must be a list", describe(e.value)), "begin each rule with - id:")
		default:
			foreign = append(foreign, e)
		}
	}
	r.foreign(foreign, "a file of rules", []string{"title", "rules"}, false)
	if len(f.Rules) == 0 && len(r.faults) == 0 {
		r.fault(root, "the file has no rules", "write rules: and a list of rules")
	}
}

// rule reads one rule.
func (r *reader) rule(n *yaml.Node) (rule PackRule) {
	entries, ok := r.mapping(n, "a rule", "write id:, when:, action: and message:")
	if !ok {
		return rule
	}
	faults := len(r.faults)
	var foreign []entry
	for _, e := range entries {
		if !r.ruleEntry(&rule, e) {
			foreign = append(foreign, e)
		}
	}
	r.foreign(foreign, "a rule", ruleKeys, false)
	if len(r.faults) > faults {
		return rule
	}
	for _, missing := range []struct{ key, value, hint string }{
		{"id", rule.ID, "write a short name of letters, digits and -, such as force-push"},
		{"title", rule.Title, "write what the rule matches, in a few words"},
		{"action", string(rule.Action), "write deny, ask or warn"},
		{"message", rule.Message, "write what to do instead"},
	} {
		if missing.value == "" {
			r.fault(n, "the rule has no "+missing.key, missing.hint)
		}
	}
	if rule.When == "" && len(rule.Patterns) == 0 {
		r.fault(n, "the rule has neither a condition nor patterns, so it matches nothing", "write when: or patterns:")
	}
	if rule.Events == nil {
		rule.Events = []schema.EventType{schema.PreToolUse}
	}
	for _, t := range rule.Events {
		if rule.Action != "" && !rule.Action.Fits(t) {
			r.fault(n, fmt.Sprintf("the rule cannot %s at %s", rule.Action, t), "write warn, or other events")
		}
	}
	return rule
}

// ruleEntry reads one key of a rule, and reports whether a rule has it.
func (r *reader) ruleEntry(rule *PackRule, e entry) bool {
	switch e.key {
	case "id":
		if rule.ID, _ = r.word(e.value, "id", "write a short name such as force-push"); rule.ID != "" && !ruleName.MatchString(rule.ID) {
			r.fault(e.value, fmt.Sprintf("%s is not an id", quote(rule.ID)), "write letters, digits, -, . and _")
		}
	case "title":
		rule.Title, _ = r.word(e.value, "title", "write what the rule matches")
	case "message":
		rule.Message, _ = r.word(e.value, "message", "write what to do instead")
	case "severity":
		if rule.Severity, _ = r.word(e.value, "severity", "write "+words(severities)); rule.Severity != "" && !slices.Contains(severities, rule.Severity) {
			r.fault(e.value, fmt.Sprintf("there is no severity %s", quote(rule.Severity)), "write one of "+words(severities))
		}
	case "events":
		for _, name := range r.list(e, "events", func(n *yaml.Node) (string, bool) { t := r.event(n, n.Value); return string(t), t != "" }) {
			rule.Events = append(rule.Events, schema.EventType(name))
		}
	case "mode":
		var h schema.Hook
		r.mode(&h, e)
		rule.Mode = h.Mode
	case "keywords":
		rule.Keywords = r.list(e, "keywords", func(n *yaml.Node) (string, bool) {
			return r.word(n, "a keyword", "write a text that each matching event has")
		})
	case "when":
		var h schema.Hook
		r.when(&h, e)
		rule.When = h.When
	case "patterns":
		rule.Patterns = r.patterns(e)
	case "action":
		rule.Action = r.choice(e, schema.RuleDeny, schema.RuleAsk, schema.RuleWarn)
	case "references":
		rule.References = r.list(e, "references", func(n *yaml.Node) (string, bool) { return r.word(n, "a reference", "write a URL") })
	case "cases":
		r.ruleCases(rule, e)
	default:
		return false
	}
	return true
}

// patterns reads the patterns of a rule.
func (r *reader) patterns(e entry) (all []schema.RulePattern) {
	const hint = "write - {field: tool_output, any: ['a pattern']}"
	if e.value.Kind != yaml.SequenceNode {
		r.fault(e.value, fmt.Sprintf("patterns is %s; it must be a list", describe(e.value)), hint)
		return nil
	}
	for _, n := range e.value.Content {
		n = deref(n)
		entries, _ := r.mapping(n, "a pattern", hint)
		var p schema.RulePattern
		var foreign []entry
		for _, e := range entries {
			switch e.key {
			case "field":
				if p.Field, _ = r.word(e.value, "field", hint); p.Field != "" && !slices.Contains(schema.RuleFields(), p.Field) {
					r.fault(e.value, fmt.Sprintf("there is no field %s for patterns", quote(p.Field)), "write one of "+words(schema.RuleFields()))
				}
			case "any":
				p.Any = r.list(e, "any", r.expression)
			default:
				foreign = append(foreign, e)
			}
		}
		r.foreign(foreign, "a pattern", patternKeys, false)
		if len(foreign) == 0 && (p.Field == "" || len(p.Any) == 0) {
			r.fault(n, "the pattern has no field, or no expressions", hint)
		}
		all = append(all, p)
	}
	return all
}

// expression reads a regular expression.
func (r *reader) expression(n *yaml.Node) (string, bool) {
	s, ok := r.text(n, "a pattern", "write a regular expression in single quotes")
	if !ok {
		return "", false
	}
	re, err := regexp.Compile(s)
	switch {
	case err != nil:
		r.fault(n, fmt.Sprintf("the regular expression cannot be compiled: %v", err), "write it in RE2's syntax, which has no backreferences and no lookaround")
	case re.MatchString(""):
		r.fault(n, "the regular expression matches an empty text, and so every event", "write one that needs some text")
	}
	return s, err == nil
}

// ruleCases reads the cases of a rule.
func (r *reader) ruleCases(rule *PackRule, e entry) {
	entries, _ := r.mapping(e.value, "cases", "write deny:, ask: or warn:, and pass:, each with a list of events")
	for _, e := range entries {
		switch {
		case !slices.Contains(caseKeys, e.key):
			r.foreign([]entry{e}, "cases", caseKeys, false)
		case e.value.Kind != yaml.SequenceNode:
			r.fault(e.value, fmt.Sprintf("%s is %s; it must be a list", e.key, describe(e.value)), "begin each case with -")
		default:
			for _, n := range e.value.Content {
				c, ok := r.ruleCase(deref(n))
				if e.key != "pass" {
					c.Want = schema.RuleAction(e.key)
				}
				if ok {
					rule.Cases = append(rule.Cases, c)
				}
			}
		}
	}
}

// ruleCase reads one case: the command of a shell, or the members of an event.
func (r *reader) ruleCase(n *yaml.Node) (RuleCase, bool) {
	const hint = "write the command of a shell, or the members of an event"
	if n.Kind == yaml.ScalarNode {
		s, ok := r.text(n, "a case", hint)
		return RuleCase{Line: n.Line, Command: s}, ok
	}
	if _, ok := r.mapping(n, "a case", hint); !ok {
		return RuleCase{}, false
	}
	raw, err := schema.Marshal(r.option(n, 0))
	if err == nil {
		err = json.Unmarshal(raw, new(schema.Event), json.RejectUnknownMembers(true))
	}
	if err != nil {
		r.fault(n, fmt.Sprintf("the case is not an event: %v", err), hint)
		return RuleCase{}, false
	}
	return RuleCase{Line: n.Line, Event: raw}, true
}
