package hooksyaml

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
)

// badCondition reports each fault of a condition at its place in the file, if the value
// is written without changes.
func (r *reader) badCondition(n *yaml.Node, err error) {
	const what, hint = "the condition cannot be compiled: ", `write CEL over the event's fields, such as 'tool_input.command.contains("rm ")'`
	faults, ok := errors.AsType[schema.ConditionFaults](err)
	if !ok {
		reason, _, _ := strings.Cut(strings.TrimSpace(err.Error()), "\n")
		r.fault(n, what+reason, hint)
		return
	}
	var text []rune
	if len(r.faults) < maxFaults {
		text = r.from(n)
	}
	for _, f := range faults {
		if f.Hint == "" {
			f.Hint = hint
		}
		line, column := n.Line, n.Column
		if at, ok := written(text, []rune(n.Value), f.Line, f.Column); ok {
			line, column = n.Line+at.line, at.column+1
			if at.line == 0 {
				column += n.Column - 1
			}
		}
		r.faultAt(line, column, what+f.Message, f.Hint)
	}
}

// from returns the text of the file from the beginning of a value, as far as the value
// can reach: each of its lines has at least one character, or is blank.
func (r *reader) from(n *yaml.Node) []rune {
	first := []rune(r.source.line(n.Line))
	var b strings.Builder
	b.WriteString(string(first[min(n.Column-1, len(first)):]))
	for i := 1; i <= 2*strings.Count(n.Value, "\n")+strings.Count(n.Value, " ")+1; i++ {
		b.WriteString("\n" + r.source.line(n.Line+i))
	}
	return []rune(b.String())
}

// spot is a position in a text. Lines and columns count from 0.
type spot struct{ line, column int }

// written converts a line and a column in a value to a position in the text of the file.
// It follows both, and gives up at differences: escapes, and anchors or tags before the
// value.
func written(text, value []rune, line, column int) (spot, bool) {
	s := tracing{text: text}
	if !s.open() {
		return spot{}, false
	}
	for _, c := range value[:offset(value, line, column)] {
		if !s.step(c) {
			return spot{}, false
		}
	}
	return s.place(), true
}

// offset returns the index of a line and a column in a text.
func offset(text []rune, line, column int) int {
	for i, c := range text {
		if line == 1 {
			return min(i+column-1, len(text))
		}
		if c == '\n' {
			line--
		}
	}
	return len(text)
}

// tracing follows the text of a value character by character.
type tracing struct {
	text   []rune
	at     int
	style  rune // ' or " or | or >, or 0 for a plain one
	indent int  // of a block
}

// open skips the text before the value.
func (s *tracing) open() bool {
	if len(s.text) == 0 {
		return false
	}
	switch c := s.text[0]; c {
	case '\'', '"':
		s.style, s.at = c, 1
	case '|', '>':
		s.style = c
		for s.at < len(s.text) && s.text[s.at] != '\n' {
			if c := s.text[s.at]; c >= '1' && c <= '9' {
				return false // an explicit indentation
			}
			s.at++
		}
		s.at++
		for s.at+s.indent < len(s.text) && s.text[s.at+s.indent] == ' ' {
			s.indent++
		}
		s.at += s.indent
	}
	return true
}

// step follows one character of the value.
func (s *tracing) step(c rune) bool {
	if s.at >= len(s.text) {
		return false
	}
	block, is := s.style == '|' || s.style == '>', s.text[s.at]
	switch end, broken := s.blanks(); {
	case block && is == '\n' && (c == '\n' || c == ' ' && s.style == '>'):
		s.newline()
		return true
	case !block && c == ' ' && broken:
		s.at = end // a line break between two lines becomes one space
		return true
	case is != c, s.style == '"' && c == '\\':
		return false
	case s.style == '\'' && c == '\'':
		s.at++ // it is doubled in the text
	}
	s.at++
	return true
}

// blanks returns where the spaces that begin here end, and whether a line ends there.
func (s *tracing) blanks() (end int, broken bool) {
	for end = s.at; end < len(s.text) && strings.ContainsRune(" \t\n", s.text[end]); end++ {
		broken = broken || s.text[end] == '\n'
	}
	return end, broken
}

// newline goes to the next line of a block.
func (s *tracing) newline() {
	s.at++
	for i := 0; i < s.indent && s.at < len(s.text) && s.text[s.at] == ' '; i++ {
		s.at++
	}
}

// place returns the current position.
func (s *tracing) place() (p spot) {
	for _, c := range s.text[:min(s.at, len(s.text))] {
		if p.column++; c == '\n' {
			p = spot{line: p.line + 1}
		}
	}
	return p
}
