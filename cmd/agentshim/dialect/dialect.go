// Package dialect translates between the hook protocols of agent runtimes and
// the fabric's events and verdicts, one file per runtime.
package dialect

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// A Dialect is one runtime's hook protocol.
type Dialect interface {
	// Decode reads what the runtime sent. want is the event that the command
	// line names; empty: the payload must.
	Decode(payload []byte, want schema.EventType) (*schema.Event, error)
	// Encode is the answer to e that the runtime obeys.
	Encode(e *schema.Event, v *schema.Verdict) (Answer, error)
}

// An Answer is what a hook's process leaves behind.
type Answer struct {
	Stdout []byte
	Stderr string
	Exit   int
}

// dialects are all runtimes; add yours here.
func dialects() map[string]Dialect {
	return map[string]Dialect{
		"generic": generic{},
	}
}

// For is the dialect of a runtime.
func For(runtime string) (Dialect, error) {
	all := dialects()
	if d, ok := all[runtime]; ok {
		return d, nil
	}
	return nil, fmt.Errorf("unknown runtime %q; write --runtime %s", runtime, strings.Join(slices.Sorted(maps.Keys(all)), " or "))
}
