package match

import "fmt"

// A SyntaxError says what is wrong with a pattern and what to write instead.
type SyntaxError struct {
	// Pattern is the whole pattern as it was given.
	Pattern string
	// Offset is where in Pattern the fault is, in bytes.
	Offset int
	// Message says what is wrong.
	Message string
	// Hint says what to write instead.
	Hint string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("the pattern %q %s; %s", e.Pattern, e.Message, e.Hint)
}
