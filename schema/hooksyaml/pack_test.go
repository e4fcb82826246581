package hooksyaml_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

// someRules is a pack with a rule at each of two events, and one that is only watched.
const someRules = `title: t
rules:
  - {id: a, title: an a, when: 'action.kind == "shell"', action: deny, message: no}
  - {id: b, title: a b, events: [PreToolUse, PostToolUse], patterns: [{field: tool_input, any: [bad]}], action: warn, message: no}
  - {id: c, title: a c, mode: shadow, when: "true", action: ask, message: no}
`

func packOptions() hooksyaml.Options {
	return hooksyaml.Options{
		Packs: map[string]string{"some": someRules},
		ReadFile: func(name string) ([]byte, error) {
			switch name {
			case "./rules/ours.yaml":
				return []byte(someRules), nil
			case "bad.yaml":
				return []byte("rules:\n  - {id: x, titel: y}\n"), nil
			}
			return nil, errors.New("no such file")
		},
		Now: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
	}
}

// summary returns the hooks of packs: the name, the mode, the rules with their exceptions, and the answers to calls
// that are not known.
func summary(cfg *schema.Config) (all []string) {
	for i := range cfg.Hooks {
		h := &cfg.Hooks[i]
		if h.Pack == "" {
			continue
		}
		s := h.Name + " " + string(h.Mode)
		rules, _ := h.Options["rules"].([]any)
		for _, r := range rules {
			s += " " + r.(map[string]any)["id"].(string)
		}
		for _, key := range []string{"unparsed", "dynamic"} {
			if v, ok := h.Options[key].(string); ok {
				s += " " + key + "=" + v
			}
		}
		if x, ok := h.Options["exceptions"].([]any); ok {
			s += " except " + x[0].(map[string]any)["agents"].(string)
		}
		all = append(all, s)
	}
	return all
}

func TestPacksBecomeHooks(t *testing.T) {
	for text, want := range map[string][]string{
		"packs: [some]":                                                                       {"some  a b unparsed=ask", "some-shadow shadow c dynamic=deny", "some-PostToolUse  b"},
		"packs: [{name: some, mode: shadow}]":                                                 {"some-shadow shadow a b c unparsed=ask dynamic=deny", "some-PostToolUse-shadow shadow b"},
		"packs: [{name: some, mode: off}]":                                                    nil,
		"packs: [{name: some, exclude: [a, c]}]":                                              {"some  b", "some-PostToolUse  b"},
		"packs: [{name: some, shadow: [a], unparsed: off, dynamic: off}]":                     {"some  b", "some-shadow shadow a c", "some-PostToolUse  b"},
		"packs: [{name: some, unparsed: deny, dynamic: ask}]":                                 {"some  a b unparsed=deny dynamic=ask", "some-shadow shadow c", "some-PostToolUse  b"},
		"packs: [{file: ./rules/ours.yaml, exclude: [b, c], unparsed: off, dynamic: off}]":    {"ours  a"},
		"packs: [{name: mine, file: ./rules/ours.yaml, exclude: [a, b]}]":                     {"mine-shadow shadow c"},
		"packs: [some]\npack_exceptions: [{rule: b, agents: x, until: 2027-01-31, owner: o}]": {"some  a b unparsed=ask except x", "some-shadow shadow c dynamic=deny", "some-PostToolUse  b except x"},
	} {
		doc, err := hooksyaml.Read("hooks.yaml", []byte(text+"\n"), packOptions())
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if d := cmp.Diff(want, summary(&doc.Config)); d != "" {
			t.Errorf("%s: (-want +got)\n%s", text, d)
		}
		again, err := hooksyaml.Read("again.yaml", hooksyaml.Write(&doc.Config), packOptions())
		if err != nil {
			t.Errorf("%s: written: %v", text, err)
			continue
		}
		if d := cmp.Diff(doc.Config, again.Config); d != "" {
			t.Errorf("%s: written and read again (-want +got)\n%s", text, d)
		}
	}
}

func TestHooksOfPacksAreProtected(t *testing.T) {
	doc, err := hooksyaml.Read("hooks.yaml", []byte("packs: [some]\nhooks: {}\n"), packOptions())
	if err != nil {
		t.Fatal(err)
	}
	for i := range doc.Config.Hooks {
		if h := &doc.Config.Hooks[i]; h.Pack != "" && (!h.System || !h.Readonly || h.FailClosed != (h.Mode != schema.Shadow && h.Event.Refusal() != schema.None)) {
			t.Errorf("%+v", h)
		}
	}
}

func TestFaultyPacks(t *testing.T) {
	for text, want := range map[string]string{
		"packs: some":                                `1:8: packs is the text "some"; it must be a list`,
		"packs: [sme]":                               `1:9: there is no pack "sme"; did you mean "some"?`,
		"packs: [some, some]":                        `1:15: the pack "some" is used twice`,
		"packs: [{name: some, mod: x}]":              `unknown key "mod"; did you mean "mode"?`,
		"packs: [{mode: shadow}]":                    `the pack has no name`,
		"packs: [{name: some, mode: watch}]":         `there is no mode "watch" of a pack; write enforce, shadow or off`,
		"packs: [{name: some, exclude: [aa]}]":       `the pack some has no rule "aa"; it has the rules a, b, c`,
		"packs: [{name: some, unparsed: no-answer}]": `unparsed is "no-answer"; write one of deny, ask, shadow and off`,
		"packs: [{file: bad.yaml}]":                  `bad.yaml:2:13: unknown key "titel"; did you mean "title"?`,
		"packs: [{file: none.yaml}]":                 `the file of rules "none.yaml" cannot be read: no such file`,
		"packs: [some]\npack_exceptions: [{rule: d, until: 2027-01-31, owner: o}]":          `2:26: no pack has the rule "d"`,
		"packs: [some]\npack_exceptions: [{rule: a, until: soon, owner: o}]":                `until is not a day; write a day such as 2027-01-31`,
		"packs: [some]\npack_exceptions: [{rule: a, until: 2027-01-31}]":                    `the exception has no owner`,
		"packs: [some]\nhooks: {PreToolUse: [{name: some, type: builtin, handler: allow}]}": `the name "some" is given twice`,
	} {
		_, err := hooksyaml.Read("hooks.yaml", []byte(text+"\n"), packOptions())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}

func TestAnEndedExceptionIsAWarning(t *testing.T) {
	doc, err := hooksyaml.Read("hooks.yaml", []byte("packs: [some]\npack_exceptions: [{rule: a, until: 2026-05-31, owner: o}]\n"), packOptions())
	if err != nil || !slices.ContainsFunc(doc.Warnings, func(w hooksyaml.Warning) bool { return strings.Contains(w.Message, "ended on 2026-05-31") }) {
		t.Errorf("%+v, %v", doc, err)
	}
}

func TestFaultyRules(t *testing.T) {
	for text, want := range map[string]string{
		"rules: []":           `the file has no rules`,
		"rules: {}":           `rules is a mapping; it must be a list`,
		"rules: [{title: t}]": `the rule has no id`,
		"rules: [{id: a b}]":  `"a b" is not an id`,
		"rules: [{id: a, title: t, message: m, action: deny}]":                               `neither a condition nor patterns`,
		"rules: [{id: a, title: t, message: m, when: x, action: ask, events: [SessionEnd]}]": `the rule cannot ask at SessionEnd`,
		"rules: [{id: a, severity: huge}]":                                                   `there is no severity "huge"`,
		"rules: [{id: a, action: block}]":                                                    `action is "block"; write one of deny, ask and warn`,
		"rules: [{id: a, patterns: [{field: inptu, any: [x]}]}]":                             `there is no field "inptu" for patterns`,
		"rules: [{id: a, patterns: [{field: prompt, any: ['(?=x)']}]}]":                      `the regular expression cannot be compiled`,
		"rules: [{id: a, patterns: [{field: prompt, any: ['x*']}]}]":                         `matches an empty text`,
		"rules: [{id: a, cases: {mach: []}}]":                                                `unknown key "mach"`,
		"rules: [{id: a, cases: {pass: [{tool: x}]}}]":                                       `the case is not an event`,
	} {
		_, err := hooksyaml.ReadRules("r.yaml", []byte(text+"\n"), hooksyaml.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}
