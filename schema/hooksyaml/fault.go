package hooksyaml

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Fault is one error in a file.
type Fault struct {
	// File is the file's name, as the caller of [Read] gave it.
	File string `json:"file"`
	// Line and Column count from 1; columns count characters.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Message says what is wrong.
	Message string `json:"message"`
	// Hint says what to write instead.
	Hint string `json:"hint,omitzero"`
	// Source is the line, shortened to the text around the column.
	Source string `json:"source,omitzero"`
}

// Error returns the place, the message and the hint on one line.
func (f Fault) Error() string {
	s := fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
	if f.Hint != "" {
		s += "; " + f.Hint
	}
	return s
}

// render writes the fault with its source line and a caret under the column.
func (f Fault) render(b *strings.Builder) {
	b.WriteString(f.Error())
	if strings.TrimSpace(f.Source) == "" {
		return
	}
	number := fmt.Sprintf("%5d", f.Line)
	fmt.Fprintf(b, "\n%s | %s\n%s | ", number, f.Source, strings.Repeat(" ", len(number)))
	caret := []rune(f.Source)
	for _, r := range caret[:min(caretAt(f.Column), len(caret))] {
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	b.WriteByte('^')
}

// Faults lists all errors in a file, in the order of its lines. [Read] returns this type of
// error.
type Faults []Fault

// Error returns each fault with its line of the file.
func (fs Faults) Error() string {
	var b strings.Builder
	for i, f := range fs {
		if i > 0 {
			b.WriteByte('\n')
		}
		f.render(&b)
	}
	return b.String()
}

// A Warning is a place that the reader skipped on purpose, or that deserves a look.
type Warning struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// String returns the place and the message on one line.
func (w Warning) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", w.File, w.Line, w.Column, w.Message)
}

// maxFaults limits the reported faults of one file, because a file of another kind has a
// fault in every line. maxKept limits the faults that are stored until the first ones are
// known.
const (
	maxFaults = 500
	maxKept   = 10 * maxFaults
)

// ordered sorts faults by place and drops repetitions, which come from values that
// aliases repeat. beyond is the number of faults that were only counted.
func ordered(fs []Fault, beyond int) Faults {
	slices.SortStableFunc(fs, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message))
	})
	fs = slices.Compact(fs)
	if more := len(fs) - maxFaults + beyond; len(fs) > maxFaults {
		last := fs[maxFaults]
		last.Message, last.Hint = fmt.Sprintf("here and below are %d more faults", more), "correct those above first"
		fs = append(fs[:maxFaults:maxFaults], last)
	}
	return fs
}
