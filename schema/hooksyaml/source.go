package hooksyaml

import "strings"

// source is the text of a file. It is cut into lines when a fault shows one.
type source struct {
	text  string
	lines []string
	cut   bool
}

// line returns line n, counted from 1. Like the YAML parser, it also ends lines at a lone
// carriage return and at Unicode's line ends. A line that is too long to show is empty.
func (s *source) line(n int) string {
	if !s.cut {
		s.cut = true
		ends := strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n")
		s.lines = strings.Split(ends.Replace(s.text), "\n")
	}
	if n < 1 || n > len(s.lines) || len(s.lines[n-1]) > longest {
		return ""
	}
	return s.lines[n-1]
}

// longest is the longest line, in bytes, of which a part is shown. Longer lines come from
// programs, and would show too little.
const longest = 64 << 10

// A line is shown whole if the column is within wide. Otherwise it is shown from before
// characters ahead of the column, with an ellipsis for the rest.
const (
	wide   = 100
	before = 60
	shown  = 160
)

// window cuts a line to the part to show for a column. It replaces bytes that are not
// UTF-8 and characters that do not print.
func window(line string, column int) string {
	runes := []rune(printable(line))
	prefix := ""
	if column > wide && len(runes) >= column-1 {
		runes, prefix = runes[column-1-before:], "…"
	}
	if len(runes) > shown {
		return prefix + string(runes[:shown]) + "…"
	}
	return prefix + string(runes)
}

// head returns the first n characters of a line, and an ellipsis for the rest.
func head(line string, n int) string {
	if runes := []rune(line); len(runes) > n {
		return string(runes[:n]) + "…"
	}
	return line
}

// caretAt returns the position of the column in a window, counted from 0.
func caretAt(column int) int {
	if column > wide {
		return before + 1
	}
	return column - 1
}
