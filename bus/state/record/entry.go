package record

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// An Entry is the input for one record. Nothing in it may change after Put.
type Entry struct {
	// Record is the record of the feed. It is not changed.
	Record *schema.Record
	// Body is the event as it was received; nil: the record is about no event.
	Body []byte
	// Input, Output and Value are the verdict's replacements of the tool's input and output, and of the
	// subject of the event.
	Input, Output, Value jsontext.Value
}

// size is about the memory that an entry uses. It shares its body with the event.
func (e *Entry) size() int {
	const fixed = 1 << 10
	return fixed + len(e.Body) + len(e.Input) + len(e.Output) + len(e.Value)
}

// A Cause is why records were dropped.
type Cause string

// The causes of dropped records.
const (
	// Full: too many records waited, because the stream was too slow.
	Full Cause = "full"
	// Refused: the stream rejects them permanently.
	Refused Cause = "refused"
	// Large: the record alone exceeds the limit of a message.
	Large Cause = "large"
	// Stopped: the broker ended before they were stored.
	Stopped Cause = "stopped"
)

// Causes returns all causes.
func Causes() []Cause { return []Cause{Full, Refused, Large, Stopped} }
