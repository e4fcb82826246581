// Package proc runs the parts of a load test as processes of their own, all of
// them this same executable. A parent keeps a [Crew] of children; a child is
// one [Role], started by [Serve].
//
// They talk in JSON lines over the child's standard input and output: the
// first line is the role's configuration, answered once the role is up; every
// further line is a request, answered in order. The end of its input ends a
// child, so that children never outlive a parent, however that one died. Each
// child leads a process group of its own: an interrupt of the terminal reaches
// the parent alone, which ends its children in order.
package proc

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// grace limits how long a child may take to end after its input is closed.
const grace = 10 * time.Second

// reply is one line from a child to its parent.
type reply struct {
	// Value is the answer; absent: the answer is empty.
	Value jsontext.Value `json:"value,omitzero"`
	// Error is the error message; empty: success.
	Error string `json:"error,omitzero"`
}
