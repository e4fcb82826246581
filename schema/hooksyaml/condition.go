package hooksyaml

import (
	"cmp"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
)

// badCondition reports each fault of a condition, or of another expression, at its place in the file.
func (r *reader) badCondition(n *yaml.Node, what string, err error) {
	const hint = `write CEL over the event's fields, such as 'tool_input.command.contains("rm ")'`
	what += " cannot be compiled: "
	faults, ok := errors.AsType[schema.ConditionFaults](err)
	if !ok {
		reason, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
		r.fault(n, what+reason, hint)
		return
	}
	for _, f := range faults {
		r.faultIn(n, offset(n.Value, f.Line, f.Column), what+f.Message, cmp.Or(f.Hint, hint))
	}
}

// faultIn reports a fault at a byte of a value, or at the value if that byte is not found in
// the file.
func (r *reader) faultIn(n *yaml.Node, at int, message, hint string) {
	line, column := n.Line, n.Column
	if len(r.faults) < maxFaults {
		if before, ok := written(r.from(n), n.Value, at); ok {
			end := strings.LastIndexByte(before, '\n')
			if line += strings.Count(before, "\n"); end >= 0 {
				column = 1
			}
			column += utf8.RuneCountInString(before[end+1:])
		}
	}
	r.faultAt(line, column, message, hint)
}

// from returns the text of the file from the beginning of a value, as far as the value
// can reach: each of its lines has at least one character, or is blank.
func (r *reader) from(n *yaml.Node) string {
	first := []rune(r.source.line(n.Line))
	var b strings.Builder
	b.WriteString(string(first[min(n.Column-1, len(first)):]))
	for i := 1; i <= 2*strings.Count(n.Value, "\n")+strings.Count(n.Value, " ")+1; i++ {
		b.WriteString("\n" + r.source.line(n.Line+i))
	}
	return b.String()
}

// offset returns the byte at a line and a column of a text, which count characters from 1.
func offset(text string, line, column int) int {
	for i := range text {
		if line == 1 && column == 1 {
			return i
		}
		if line == 1 {
			column--
		} else if text[i] == '\n' {
			line--
		}
	}
	return len(text)
}

// extent returns where the characters of a written value begin and end in text, as far as its
// first character tells: a block begins on the next line, and a quoted value ends with its quote.
func extent(text string) (begin, end int) {
	switch {
	case strings.HasPrefix(text, "|"), strings.HasPrefix(text, ">"):
		return strings.IndexByte(text, '\n') + 1, len(text)
	case strings.HasPrefix(text, `"`):
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case '"':
				return 1, i
			}
		}
	case strings.HasPrefix(text, "'"):
		for i := 1; i < len(text); i++ {
			switch {
			case strings.HasPrefix(text[i:], "''"):
				i++
			case text[i] == '\'':
				return 1, i
			}
		}
	}
	return 0, len(text)
}

// written returns the part of text, in which a value is written, before a byte of the value. It
// finds the word there by its occurrences, because lines may be indented and folded. It returns
// false for a word with escapes.
func written(text, value string, at int) (before string, ok bool) {
	begin := strings.LastIndexFunc(value[:at], unicode.IsSpace) + 1
	word := value[begin:]
	if end := strings.IndexFunc(value[at:], unicode.IsSpace); end >= 0 {
		word = value[begin : at+end]
	}
	if word == "" {
		return "", false
	}
	start, end := extent(text)
	text = text[:end]
	for range strings.Count(value[:begin], word) + 1 {
		next := strings.Index(text[start:], word)
		if next < 0 {
			return "", false
		}
		start += next + len(word)
	}
	return text[:start-len(word)+at-begin], true
}
