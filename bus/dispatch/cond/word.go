package cond

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// strangers are names that users may expect, with hints to ours.
var strangers = map[string]string{
	"status":      "write one of its fields without the prefix, such as iteration",
	"hook_event":  "write hook_type",
	"event_type":  "write hook_type",
	"session":     "write session_id",
	"tool":        "write tool_name",
	"input":       "write tool_input",
	"args":        "write tool_args, or tool_input for the runtime's own form",
	"arguments":   "write tool_input",
	"output":      "write tool_output",
	"result":      "write tool_output",
	"command":     "write tool_input.command",
	"file_path":   "write tool_input.file_path",
	"native":      "conditions cannot use it; the fabric sends it only to hooks that need it",
	"history":     "conditions cannot use it; the fabric sends it only to hooks that need it",
	"history_ref": "conditions cannot use it; it only says where the history is stored",
	"messages":    "conditions cannot use the conversation; the fabric sends it only to hooks that need history",
	"flag":        "write flags",
	"True":        "write true",
	"False":       "write false",
	"None":        "write null",
	"now":         "conditions cannot read the clock; use the event's timestamp",
}

// macros look like functions and take unevaluated arguments.
var macros = map[string]string{
	"all":        `write list.all(x, x > 1)`,
	"exists":     `write list.exists(x, x > 1)`,
	"exists_one": `write list.exists_one(x, x > 1)`,
	"map":        `write list.map(x, x + 1)`,
	"filter":     `write list.filter(x, x > 1)`,
	"has":        `write has(tool_input.command)`,
	"optMap":     `write tool_input.?command.optMap(c, c.size() > 9)`,
	"optFlatMap": `write tool_input.?nested.optFlatMap(n, n.?command)`,
	"lower":      `write text.lowerAscii()`,
	"upper":      `write text.upperAscii()`,
	"len":        `write size(text)`,
	"startswith": `write text.startsWith("x")`,
	"endswith":   `write text.endsWith("x")`,
	"includes":   `write text.contains("x")`,
	"strip":      `write text.trim()`,
}

// miscalled ends the message about a macro with the wrong arguments.
const miscalled = " has the wrong arguments"

// unknown words an undeclared name. If it is a function's name, the place is its opening
// bracket.
func unknown(m []string, at string) (string, string) {
	name, near := m[1], m[2]
	if strings.HasPrefix(at, "(") {
		hint := macros[name]
		switch {
		case hint != "" && near == "" && hintsUse(name, hint):
			return name + miscalled, hint
		case hint == "" && near != "":
			hint = "did you mean " + near + "?"
		case hint == "":
			hint = "write a function of CEL, such as contains, startsWith, matches or size"
		}
		return "there is no function " + clip(name), hint
	}
	hint := strangers[name]
	if hint == "" && near == "" {
		near = declared(name)
	}
	switch {
	case hint == "" && near != "":
		hint = "did you mean " + near + "?"
	case hint == "":
		hint = "a condition can use " + strings.Join(names(), ", ")
	}
	return "there is no field " + clip(name), hint
}

// hintsUse reports whether a hint calls the function of that name.
func hintsUse(name, hint string) bool { return strings.Contains(hint, name+"(") }

// declared returns the field whose name differs only in case and underscores.
func declared(name string) string {
	for _, n := range names() {
		if folded(n) == folded(name) {
			return n
		}
	}
	return ""
}

func folded(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }

// names returns the fields that conditions can use.
func names() []string {
	all := slices.Clone(routed)
	for _, f := range fields {
		all = append(all, f.name)
	}
	slices.Sort(all)
	return all
}

// unfitting words a function or an operator with arguments of the wrong type.
func unfitting(m []string, _ string) (string, string) {
	function, target, args := m[1], "", m[2]
	if before, after, ok := strings.Cut(args, ".("); ok {
		target, args = before, "("+after
	}
	given := split(strings.TrimSuffix(strings.TrimPrefix(args, "("), ")"))
	for i := range given {
		given[i] = article(given[i])
	}
	if function == "_?_:_" && len(given) > 2 {
		given = given[1:] // the condition of the conditional operator
	}
	list := strings.Join(given, " and ")
	switch operator := strings.Trim(function, "_"); {
	case function == "_?_:_":
		return fmt.Sprintf("the branches of ? have different types: %s", list), "write condition ? this : that, where both are of one type"
	case function == "_[_]":
		return fmt.Sprintf("[…] cannot be applied to %s", list), "write the name of a field in quotes, or an item's number"
	case function == "@in":
		return fmt.Sprintf("in does not take %s", list), "look into a list or a map, or write text.contains(part)"
	case operator == "!" || operator == "&&" || operator == "||":
		return fmt.Sprintf("%s does not take %s", operator, list), "compare it with something first"
	case function == "-_":
		return fmt.Sprintf("- does not take %s", list), "compare it with something first"
	case function != operator:
		return fmt.Sprintf("%s does not take %s", operator, list), "write both sides as values of one type"
	}
	if target != "" {
		return fmt.Sprintf("%s of %s does not take (%s)", function, article(target), strings.Join(given, ", ")), ""
	}
	return fmt.Sprintf("%s does not take %s", function, list), ""
}

// split cuts a list of types at the commas outside brackets.
func split(types string) []string {
	depth, from := 0, 0
	var out []string
	for i, c := range types {
		switch c {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				out, from = append(out, strings.TrimSpace(types[from:i])), i+1
			}
		}
	}
	return append(out, strings.TrimSpace(types[from:]))
}

// article returns the name of a type with its article.
func article(t string) string {
	switch {
	case t == "dyn":
		return "a value of any type"
	case t == "null", t == "null_type":
		return "null"
	case t == "", t == "bytes":
		return t
	case strings.ContainsRune("aeiou", rune(t[0])) && t != "uint":
		return "an " + clip(t)
	}
	return "a " + clip(t)
}

// strange words a character that is not part of the language.
func strange(m []string, at string) (string, string) {
	switch c := strings.TrimSpace(m[1]); {
	case strings.HasPrefix(c, `"`), strings.HasPrefix(c, `'`):
		return "this quote is never closed", `close it, and write \\ for a backslash in it`
	case strings.HasPrefix(c, "=~"):
		return "there is no =~", `write text.matches("pattern")`
	case strings.HasPrefix(c, "="):
		return "= is not a comparison", "write =="
	case strings.HasPrefix(c, "&"):
		return "a single & is not an operator", "write &&"
	case strings.HasPrefix(c, "|"):
		return "a single | is not an operator", "write ||"
	}
	return quoted(at) + " is not valid here", "put strings in quotes"
}

// beyond words text after a complete condition.
func beyond(m []string, at string) (string, string) {
	hint := "join conditions with && or ||"
	switch strings.ToLower(m[1]) {
	case "and":
		hint = "write &&"
	case "or":
		hint = "write ||"
	case "is", "eq", "equals":
		hint = "write =="
	case "contains", "startswith", "endswith", "matches":
		hint = fmt.Sprintf("write it as a call, such as tool_name.%s(\"x\")", clip(m[1]))
	case "like":
		hint = `write text.matches("pattern")`
	case "=", ":=":
		hint = "write =="
	}
	return fmt.Sprintf("unexpected %s after a complete condition", quoted(at)), hint
}

// quoted returns the first word of a text, in quotes.
func quoted(at string) string {
	word := at
	if i := strings.IndexFunc(at, unicode.IsSpace); i > 0 {
		word = at[:i]
	}
	return fmt.Sprintf("%q", clip(word))
}

// clip shortens text that a message repeats, and removes line breaks.
func clip(s string) string {
	const most = 80
	s = strings.ToValidUTF8(s[:min(len(s), 4*most)], "")
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
