package record

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// An Entry is what is to be written down of one verdict. Nothing that it holds may
// change after it was put.
type Entry struct {
	// Record is what the feed tells. It is not changed.
	Record *schema.Record
	// Body is the event as it was asked; nil: the record is about none.
	Body []byte
	// Input, Output and Value are what the verdict puts in the place of the tool's
	// input and output, or of what the event is about.
	Input, Output, Value jsontext.Value
}

// size is about what an entry holds in memory. Its body stays where it was read to.
func (e *Entry) size() int {
	const fixed = 1 << 10
	return fixed + len(e.Body) + len(e.Input) + len(e.Output) + len(e.Value)
}

// A Cause is why records were dropped.
type Cause string

// The causes of dropped records.
const (
	// Full: more came than can wait, because the stream took none, or too slowly.
	Full Cause = "full"
	// Refused: the stream will not have them, however often it is tried.
	Refused Cause = "refused"
	// Large: the record alone is more than a message may hold.
	Large Cause = "large"
	// Stopped: the broker ended before the stream had them.
	Stopped Cause = "stopped"
)

// Causes lists them all.
func Causes() []Cause { return []Cause{Full, Refused, Large, Stopped} }
