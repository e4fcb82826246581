package schema

import (
	"fmt"
	"strings"
)

// A ConditionFault is one error in a hook's condition.
type ConditionFault struct {
	// Line and Column locate the fault in the condition's text. Both count from 1; columns
	// count characters.
	Line   int
	Column int
	// Message says what is wrong.
	Message string
	// Hint says what to write instead.
	Hint string
}

// Error returns the place, the message and the hint on one line.
func (f ConditionFault) Error() string {
	s := fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Message)
	if f.Hint != "" {
		s += "; " + f.Hint
	}
	return s
}

// ConditionFaults lists all errors in a condition, in the order of its text. A condition that
// does not compile fails with this type.
type ConditionFaults []ConditionFault

// Error returns one line for each fault.
func (fs ConditionFaults) Error() string {
	lines := make([]string, len(fs))
	for i, f := range fs {
		lines[i] = f.Error()
	}
	return strings.Join(lines, "\n")
}
