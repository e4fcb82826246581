package hooksyaml

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/match"
)

var (
	packKeys      = []string{"name", "file", "mode", "exclude", "shadow", "unparsed", "dynamic"}
	exceptionKeys = []string{"rule", "agents", "until", "owner"}
)

// used is a pack of the configuration, with its rules.
type used struct {
	schema.Pack
	rules []PackRule
	at    *yaml.Node
}

// packs reads the packs of the configuration and the rules in them.
func (r *reader) packs(e entry) (all []used) {
	if e.value.Kind != yaml.SequenceNode {
		r.fault(e.value, fmt.Sprintf("packs is %s; it must be a list", describe(e.value)), "write [destructive, secrets], or [] for none")
		return nil
	}
	lines := map[string]int{}
	for _, n := range e.value.Content {
		n = deref(n)
		p, ok := r.pack(n)
		if !ok {
			continue
		}
		if line, twice := lines[p.Name]; twice {
			r.fault(n, fmt.Sprintf("the pack %s is used twice; it is already on line %d", quote(p.Name), line), "keep one of them, or give a file another name:")
			continue
		}
		lines[p.Name] = n.Line
		if u := (used{Pack: p, at: n}); r.rulesOf(&u) {
			all = append(all, u)
		}
		r.config.Packs = append(r.config.Packs, p)
	}
	return all
}

// pack reads one pack: its name, or a mapping.
func (r *reader) pack(n *yaml.Node) (p schema.Pack, ok bool) {
	p.Unparsed, p.Dynamic = schema.RuleAsk, schema.RuleShadow
	if n.Kind == yaml.ScalarNode {
		p.Name, ok = r.word(n, "a pack", "write the name of a pack, such as destructive")
		return p, ok
	}
	entries, ok := r.mapping(n, "a pack", "write its name, such as destructive, or {name: destructive}")
	if !ok {
		return p, false
	}
	faults := len(r.faults)
	var foreign []entry
	for _, e := range entries {
		switch e.key {
		case "name":
			p.Name, _ = r.word(e.value, "name", "write the name of a pack, such as destructive")
		case "file":
			p.File, _ = r.word(e.value, "file", "write a path such as ./rules/ours.yaml")
		case "mode":
			p.Mode = r.packMode(e)
		case "exclude":
			p.Exclude = r.list(e, "exclude", r.ruleID)
		case "shadow":
			p.Shadow = r.list(e, "shadow", r.ruleID)
		case "unparsed":
			p.Unparsed = r.choice(e, schema.RuleDeny, schema.RuleAsk, schema.RuleShadow, schema.RuleOff)
		case "dynamic":
			p.Dynamic = r.choice(e, schema.RuleDeny, schema.RuleAsk, schema.RuleShadow, schema.RuleOff)
		default:
			foreign = append(foreign, e)
		}
	}
	r.foreign(foreign, "a pack", packKeys, false)
	if p.Name == "" && p.File != "" {
		p.Name = strings.TrimSuffix(path.Base(p.File), path.Ext(p.File))
	}
	if p.Name == "" && len(r.faults) == faults {
		r.fault(n, "the pack has no name", "write name: with a pack such as destructive, or file: with a file of rules")
	}
	return p, len(r.faults) == faults
}

func (r *reader) packMode(e entry) schema.Mode {
	switch s, ok := r.word(e.value, "mode", "write enforce, shadow or off"); {
	case !ok, s == "enforce":
	case s == string(schema.Shadow), s == string(schema.Off):
		return schema.Mode(s)
	default:
		r.fault(e.value, fmt.Sprintf("there is no mode %s of a pack", quote(s)), "write enforce, shadow or off")
	}
	return schema.Enforce
}

func (r *reader) ruleID(n *yaml.Node) (string, bool) {
	return r.word(n, "a rule's id", "write the id of a rule, such as force-push")
}

// choice reads one of some actions.
func (r *reader) choice(e entry, from ...schema.RuleAction) schema.RuleAction {
	var names []string
	for _, a := range from {
		names = append(names, string(a))
	}
	hint := "write one of " + words(names)
	s, ok := r.word(e.value, e.key, hint)
	if ok && !slices.Contains(names, s) {
		r.fault(e.value, fmt.Sprintf("%s is %s", e.key, quote(s)), hint)
	}
	return schema.RuleAction(s)
}

// rulesOf reads the rules of a pack. Their faults are in the file of the rules.
func (r *reader) rulesOf(u *used) bool {
	var (
		text string
		name = u.File
	)
	if u.File == "" {
		var shipped bool
		if text, shipped = r.options.Packs[u.Name]; !shipped {
			known := slices.Sorted(maps.Keys(r.options.Packs))
			r.fault(u.at, fmt.Sprintf("there is no pack %s", quote(u.Name)), hintFor(u.Name, known, "write one of "+words(known)+", or file: with a file of rules"))
			return false
		}
		name = "the pack " + u.Name
	} else {
		if r.options.ReadFile == nil {
			r.fault(u.at, fmt.Sprintf("the file %s cannot be read here", quote(u.File)), "apply the configuration with the command broker apply, in the folder of the file")
			return false
		}
		data, err := r.options.ReadFile(u.File)
		if err != nil {
			r.fault(u.at, fmt.Sprintf("the file of rules %s cannot be read: %v", quote(u.File), err), "write a path relative to the configuration")
			return false
		}
		text = string(data)
		if r.files == nil {
			r.files = make(map[string]string)
		}
		r.files[u.File] = text
	}
	file, err := ReadRules(name, []byte(text), r.options)
	if err != nil {
		if fs, ok := errors.AsType[Faults](err); ok {
			r.elsewhere = append(r.elsewhere, fs...)
		}
		return false
	}
	u.rules = file.Rules
	return r.knownRules(u)
}

// knownRules rejects ids of rules that the pack does not have.
func (r *reader) knownRules(u *used) bool {
	ids := make([]string, 0, len(u.rules))
	for i := range u.rules {
		ids = append(ids, u.rules[i].ID)
	}
	ok := true
	for _, id := range slices.Concat(u.Exclude, u.Shadow) {
		if slices.Contains(ids, id) {
			continue
		}
		r.fault(u.at, fmt.Sprintf("the pack %s has no rule %s", u.Name, quote(id)), hintFor(id, ids, "it has the rules "+clipList(ids)))
		ok = false
	}
	return ok
}

// exceptions reads the exceptions from rules.
func (r *reader) exceptions(e entry, packs []used) {
	if e.value.Kind != yaml.SequenceNode {
		r.fault(e.value, fmt.Sprintf("pack_exceptions is %s; it must be a list", describe(e.value)), "write - {rule: ..., agents: ..., until: 2027-01-31, owner: ...}")
		return
	}
	var ids []string
	whole := len(r.faults)+len(r.elsewhere) == 0 // all rules are known
	for i := range packs {
		for j := range packs[i].rules {
			ids = append(ids, packs[i].rules[j].ID)
		}
	}
	for _, n := range e.value.Content {
		if x, ok := r.exception(deref(n), ids, whole); ok {
			r.config.PackExceptions = append(r.config.PackExceptions, x)
		}
	}
}

func (r *reader) exception(n *yaml.Node, ids []string, whole bool) (x schema.RuleException, ok bool) {
	entries, ok := r.mapping(n, "an exception", "write {rule: ..., agents: ..., until: 2027-01-31, owner: ...}")
	if !ok {
		return x, false
	}
	faults := len(r.faults)
	var foreign []entry
	for _, e := range entries {
		switch e.key {
		case "rule":
			if x.Rule, ok = r.ruleID(e.value); ok && whole && !slices.Contains(ids, x.Rule) {
				r.fault(e.value, fmt.Sprintf("no pack has the rule %s", quote(x.Rule)), hintFor(x.Rule, ids, "write the id of a rule in one of the packs"))
			}
		case "agents":
			if x.Agents, ok = r.word(e.value, "agents", `write a glob such as "release-*"`); ok {
				if _, err := match.Compile(x.Agents); err != nil {
					r.badPattern(e.value, "agents", err)
				}
			}
		case "until":
			x.Until = r.until(e)
		case "owner":
			x.Owner, _ = r.word(e.value, "owner", "write who answers for the exception, such as platform")
		default:
			foreign = append(foreign, e)
		}
	}
	r.foreign(foreign, "an exception", exceptionKeys, false)
	for _, missing := range []struct{ key, value string }{{"rule", x.Rule}, {"until", x.Until}, {"owner", x.Owner}} {
		if missing.value == "" && len(r.faults) == faults {
			r.fault(n, "the exception has no "+missing.key, "write "+missing.key+":")
		}
	}
	return x, len(r.faults) == faults
}

// until reads the last day of an exception. An exception that has ended is only a warning, because the
// rule applies again, and a broker must still start.
func (r *reader) until(e entry) string {
	day, err := time.Parse(time.DateOnly, e.value.Value)
	if err != nil || e.value.Kind != yaml.ScalarNode {
		r.fault(e.value, "until is not a day", "write a day such as 2027-01-31")
		return ""
	}
	if !r.options.Now.IsZero() && !r.options.Now.Before(day.AddDate(0, 0, 1)) {
		r.warn(e.value, fmt.Sprintf("the exception ended on %s, and the rule applies again; remove the exception, or write a later day", e.value.Value))
	}
	return e.value.Value
}

// packHooks returns the hooks of one pack: for each event one that answers and one in shadow, if they have
// rules.
func (r *reader) packHooks(u *used) (hooks []schema.Hook) {
	if u.Mode == schema.Off {
		return nil
	}
	for _, event := range schema.EventTypes() {
		enforced, watched := r.sets(u, event)
		name := u.Name
		if event != schema.PreToolUse {
			name += "-" + string(event)
		}
		for _, set := range []struct {
			name string
			mode schema.Mode
			schema.RuleSet
		}{{name, schema.Enforce, enforced}, {name + "-shadow", schema.Shadow, watched}} {
			if len(set.Rules) == 0 && set.Unparsed == "" && set.Dynamic == "" {
				continue
			}
			hooks = append(hooks, schema.Hook{
				Name: set.name, Event: event, Type: schema.Builtin, Handler: schema.RulesHandler, Timeout: schema.DefaultTimeout,
				FailClosed: set.mode == schema.Enforce && event.Refusal() != schema.None,
				Pool:       schema.DefaultPool, Readonly: true, Idempotent: true, Mode: set.mode, System: true,
				Options: r.optionsOf(u, &set.RuleSet), Pack: u.Name,
			})
		}
	}
	return hooks
}

// sets returns the rules of a pack that answer at an event, and those that are only watched.
func (r *reader) sets(u *used, event schema.EventType) (enforced, watched schema.RuleSet) {
	parsed := false // some rule needs the facts of the call
	for i := range u.rules {
		rule := &u.rules[i]
		if slices.Contains(u.Exclude, rule.ID) || !slices.Contains(rule.Events, event) {
			continue
		}
		parsed = parsed || strings.Contains(rule.When, "action.") || slices.ContainsFunc(rule.Patterns, func(p schema.RulePattern) bool { return p.Field == "commands" })
		to := &enforced
		if u.Mode == schema.Shadow || rule.Mode == schema.Shadow || slices.Contains(u.Shadow, rule.ID) {
			to = &watched
		}
		to.Rules = append(to.Rules, rule.Rule)
		for _, x := range r.config.PackExceptions {
			if x.Rule == rule.ID {
				to.Exceptions = append(to.Exceptions, x)
			}
		}
	}
	if !parsed || event != schema.PreToolUse {
		return enforced, watched
	}
	enforced.Unparsed, watched.Unparsed = u.split(u.Unparsed)
	enforced.Dynamic, watched.Dynamic = u.split(u.Dynamic)
	return enforced, watched
}

// split returns the answer that counts and the one that is only watched.
func (u *used) split(a schema.RuleAction) (enforced, watched schema.RuleAction) {
	switch {
	case a == schema.RuleOff:
		return "", ""
	case a == schema.RuleShadow:
		return "", schema.RuleDeny
	case u.Mode == schema.Shadow:
		return "", a
	}
	return a, ""
}

// optionsOf returns rules as JSON values.
func (r *reader) optionsOf(u *used, set *schema.RuleSet) (options map[string]any) {
	raw, err := schema.Marshal(set)
	if err == nil {
		err = schema.Unmarshal(raw, &options)
	}
	if err != nil {
		r.fault(u.at, fmt.Sprintf("the rules of the pack %s cannot be written as JSON: %v", quote(u.Name), err), "")
	}
	return options
}
