package schema

import (
	"fmt"
	"strings"
)

// A ConditionFault is one thing that is wrong with a hook's condition.
type ConditionFault struct {
	// Line and Column are the place in the condition's text. They count from 1;
	// columns count characters.
	Line   int
	Column int
	// Message says what is wrong.
	Message string
	// Hint says what to write instead.
	Hint string
}

// Error is the fault in one sentence, with its place.
func (f ConditionFault) Error() string {
	s := fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Message)
	if f.Hint != "" {
		s += "; " + f.Hint
	}
	return s
}

// ConditionFaults are all that is wrong with a condition, in the order of its
// text. It is the type of the error of a condition that can not be compiled.
type ConditionFaults []ConditionFault

// Error has a line for each fault.
func (fs ConditionFaults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}
