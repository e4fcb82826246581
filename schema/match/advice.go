package match

import (
	"fmt"
	"strings"
)

// maxAdvice limits a proposed pattern, in bytes.
const maxAdvice = 256

// Advice says of a pattern for names of tools that can be read what is probably meant by
// something else, and what to write; empty: nothing is. Commas, braces and a leading ! match
// themselves, and no runtime has tools of such names.
func Advice(pattern string) string {
	outside := withoutSets(pattern)
	switch name, negated := negation(pattern); {
	case negated && isName(name):
		return fmt.Sprintf("the matcher %.80q has an alternative that fits only a tool whose name begins with !: matchers have no negation; remove the matcher and write when: 'tool_name != \"%s\"'", pattern, name)
	case negated:
		return fmt.Sprintf("the matcher %.80q has an alternative that fits only tools whose names begin with !: matchers have no negation; remove the ! and write a condition on tool_name with when:", pattern)
	case strings.ContainsAny(outside, "{}"):
		return fmt.Sprintf("the matcher %.80q has an alternative that fits only tools with braces in their names: braces have no meaning; %s", pattern, alternatives(pattern))
	case strings.Contains(outside, ","):
		return fmt.Sprintf("the matcher %.80q has an alternative that fits only tools with a comma in their names: | separates alternatives; %s", pattern, alternatives(pattern))
	}
	return ""
}

// negation returns the rest of a pattern if some alternative begins with !.
func negation(pattern string) (rest string, negated bool) {
	for alternative := range strings.SplitSeq(pattern, "|") {
		if _, negated = strings.CutPrefix(strings.TrimSpace(alternative), "!"); negated {
			return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(pattern), "!")), true
		}
	}
	return "", false
}

// isName reports whether s can be the name of one tool, as model APIs permit it.
func isName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == ""
}

// withoutSets returns a pattern without its sets, which may contain special characters as
// literals.
func withoutSets(pattern string) string {
	var out strings.Builder
	for pattern != "" {
		before, rest, found := strings.Cut(pattern, "[")
		out.WriteString(before)
		if !found {
			break
		}
		rest = strings.TrimPrefix(rest, "!")
		_, after, _ := strings.Cut(rest[min(1, len(rest)):], "]") // a ] at the start is a literal
		pattern = after
	}
	return out.String()
}

// alternatives returns a pattern with | instead of braces and commas, if it can be
// derived.
func alternatives(pattern string) string {
	var names []string
	for _, expanded := range expand(pattern) {
		for name := range strings.FieldsFuncSeq(expanded, func(c rune) bool { return c == ',' || c == '|' }) {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
	}
	meant := strings.Join(names, "|")
	_, negated := negation(meant)
	if _, err := Compile(meant); err != nil || meant == "" || len(meant) > maxAdvice || negated || strings.ContainsAny(withoutSets(meant), "{},") {
		return `write the names with | between them, such as "Write|Edit"`
	}
	return fmt.Sprintf("write %q", meant)
}

// expand expands the braces of a pattern as a shell does, if there is one pair. Unpaired
// braces are removed.
func expand(pattern string) []string {
	before, rest, opened := strings.Cut(pattern, "{")
	inside, after, closed := strings.Cut(rest, "}")
	switch {
	case !opened || !closed:
		return []string{strings.NewReplacer("{", "", "}", "").Replace(pattern)}
	case strings.ContainsAny(before+after, ",|"), len(pattern) > maxAdvice:
		return []string{pattern} // the pairs are unclear, or too many
	}
	var all []string
	for one := range strings.FieldsFuncSeq(inside, func(c rune) bool { return c == ',' || c == '|' }) {
		all = append(all, before+strings.TrimSpace(one)+after)
	}
	return all
}
