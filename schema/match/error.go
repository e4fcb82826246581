package match

import "fmt"

// A SyntaxError says what is wrong with a pattern and what to write instead.
type SyntaxError struct {
	// Pattern is the whole pattern.
	Pattern string
	// Offset is the position of the fault in Pattern, in bytes.
	Offset int
	// Message says what is wrong.
	Message string
	// Hint says what to write instead.
	Hint string
}

// Error returns the pattern, the message and the hint on one line.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("the pattern %q %s; %s", e.Pattern, e.Message, e.Hint)
}
