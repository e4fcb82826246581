package cond

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/hookfabric/hookfabric/schema"
)

// whole returns a fault of a whole condition.
func whole(message, hint string) schema.ConditionFaults {
	return schema.ConditionFaults{{Line: 1, Column: 1, Message: message, Hint: hint}}
}

// misfit returns the fault of an expression whose value has another type than the result.
func misfit(result Result, t *cel.Type) schema.ConditionFaults {
	if result == Text {
		return whole(fmt.Sprintf("the expression evaluates to %s, not to a text", article(t.String())), "put a text in quotes, or convert the value with string(…)")
	}
	hint := "compare it with something, as in iteration > 3"
	if strings.HasPrefix(t.String(), "optional") {
		hint = `end it with orValue and compare it, as in tool_input.?command.orValue("") == "ls"`
	}
	return whole(fmt.Sprintf("the condition evaluates to %s, not to true or false", article(t.String())), hint)
}

// faults words the errors of CEL. After a syntax error the rest cannot be parsed, so
// there is at most one syntax error.
func faults(expr string, issues []*cel.Error, known []wording) schema.ConditionFaults {
	lines := strings.Split(expr, "\n")
	var fs schema.ConditionFaults
	syntax := false
	for _, issue := range issues {
		f := schema.ConditionFault{Line: max(issue.Location.Line(), 1), Column: max(issue.Location.Column(), 0) + 1}
		var isSyntax bool
		f.Message, f.Hint, isSyntax = say(known, issue.Message, rest(lines, f))
		if !isSyntax || !syntax {
			fs = append(fs, f)
		}
		syntax = syntax || isSyntax
	}
	fs = slices.DeleteFunc(fs, func(f schema.ConditionFault) bool { return follows(f, fs) })
	slices.SortStableFunc(fs, func(a, b schema.ConditionFault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(fs)
}

// follows reports whether a fault is an unknown loop variable that follows from a
// malformed loop.
func follows(f schema.ConditionFault, all []schema.ConditionFault) bool {
	return slices.ContainsFunc(all, func(loop schema.ConditionFault) bool {
		return strings.HasSuffix(loop.Message, miscalled) && loop.Line == f.Line && loop.Column+1 == f.Column
	})
}

// rest returns the line of a fault from its place on.
func rest(lines []string, f schema.ConditionFault) string {
	if f.Line > len(lines) {
		return ""
	}
	line := []rune(lines[f.Line-1])
	return string(line[min(f.Column-1, len(line)):])
}

// patternMark begins the messages of our validator of patterns.
const patternMark = "the pattern of matches "

// A wording replaces a message of CEL. From the message's groups and the text at its
// place it makes a message and a hint.
type wording struct {
	message *regexp.Regexp
	syntax  bool
	say     func(m []string, at string) (message, hint string)
}

// always returns a wording that needs nothing of CEL's message.
func always(message, hint string) func([]string, string) (string, string) {
	return func([]string, string) (string, string) { return message, hint }
}

// wordings are tried in order.
func wordings() []wording {
	return []wording{
		{message: regexp.MustCompile(`^undeclared reference to '([^']*)'(?: \(did you mean '([^']*)')?`), say: unknown},
		{message: regexp.MustCompile(`^type '(.*)' does not support field selection`), say: noFields},
		{message: regexp.MustCompile(`^found no matching overload for '(.*)' applied to '(.*)'`), say: unfitting},
		{message: regexp.MustCompile(`^invalid argument to has\(\)`), say: always("has takes a field of a map", "write has(tool_input.command)")},
		{message: regexp.MustCompile(`^argument (is not an identifier|must be a simple name)|^.*(variable name|iteration variable)`),
			say: always("the first argument of a loop must be a name for its items", "write it as in labels.exists(name, name == \"team\")")},
		{message: regexp.MustCompile(`^expression of type '(.*)' cannot be range of a comprehension`), say: noItems},
		{message: regexp.MustCompile(`^comprehension exceeds nesting limit`),
			say: always(fmt.Sprintf("loops are nested more than %d deep", maxLoops), "move the decision into a hook")},
		{message: regexp.MustCompile(`^expected type '(.*)' but found '(.*)'`), say: mixed},
		{message: regexp.MustCompile(`^invalid timestamp argument`), say: always("this is not a valid time", `write timestamp("2026-01-02T15:04:05Z")`)},
		{message: regexp.MustCompile(`^invalid duration argument`), say: always("this is not a valid duration", `write duration("90s")`)},
		{message: regexp.MustCompile(`^` + patternMark + `((?s).*)`), say: badPattern},
		{message: regexp.MustCompile(`^(?:Syntax error: |internal error: )?(?:max recursion|expression (?:recursion|count|node count|code point size))`), syntax: true,
			say: always("the condition is too long, or nests too deep", "write less, or move the decision into a hook")},
		{message: regexp.MustCompile(`^reserved identifier: (.*)`), syntax: true, say: reserved},
		{message: regexp.MustCompile(`^Syntax error: token recognition error at: '((?s).*)'$`), syntax: true, say: strange},
		{message: regexp.MustCompile(`^Syntax error: (?:mismatched|extraneous) input '<EOF>'`), syntax: true, say: misplaced},
		{message: regexp.MustCompile(`^Syntax error: (?:mismatched|extraneous) input '((?s).*?)' expecting <EOF>`), syntax: true, say: beyond},
		{message: regexp.MustCompile(`^Syntax error: |^error recovery`), syntax: true, say: misplaced},
	}
}

// say words one message.
func say(known []wording, message, at string) (text, hint string, syntax bool) {
	for _, w := range known {
		if m := w.message.FindStringSubmatch(message); m != nil {
			text, hint = w.say(m, at)
			return text, hint, w.syntax
		}
	}
	return clip(message), "", false
}

func noFields(m []string, _ string) (string, string) {
	return article(m[1]) + " has no fields", "only maps such as tool_input and labels have fields"
}

func noItems(m []string, _ string) (string, string) {
	return article(m[1]) + " has no items", "loop over a list or a map"
}

func mixed(m []string, _ string) (string, string) {
	return fmt.Sprintf("a list of %s contains %s", m[1], article(m[2])), "write items of one type"
}

func badPattern(m []string, _ string) (string, string) {
	return patternMark + clip(m[1]), `write it as in tool_name.matches("^mcp__")`
}

func reserved(m []string, _ string) (string, string) {
	return fmt.Sprintf("%s is a reserved word", clip(m[1])), `write a choice as condition ? this : that, and a field as tool_input["` + clip(m[1]) + `"]`
}

func misplaced(_ []string, at string) (string, string) {
	if at == "" {
		return "the condition ends too early", "a value or a closing bracket is missing"
	}
	return quoted(at) + " is unexpected here", "check whether something is missing before it"
}

// evaluation words the reason why a condition could not be evaluated.
func evaluation(err error) error {
	if key, ok := strings.CutPrefix(err.Error(), "no such key: "); ok {
		return fmt.Errorf(`the event has no %s; check it first with has(…), or write .?%s.orValue("")`, clip(key), clip(key))
	}
	return fmt.Errorf("evaluating the condition: %w", errors.New(clip(err.Error())))
}
