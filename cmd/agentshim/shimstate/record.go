package shimstate

import (
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// The bounds of a file. What is dropped may be handed over once more.
const (
	maxEvents    = 500
	maxSequences = 2000
	maxFile      = 128 << 10
)

// A record is what a file says, both oldest first.
type record struct {
	// Events are still to be acknowledged.
	Events []string `json:"events,omitzero"`
	// Sequences were handed over.
	Sequences []uint64 `json:"sequences,omitzero"`
}

// decode reads a file. An event that is no UUID would make questions malformed.
func decode(data []byte) (r record, err error) {
	if len(data) > maxFile {
		return r, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	if err := schema.Unmarshal(data, &r); err != nil {
		return record{}, err
	}
	for _, e := range r.Events {
		if len(e) != len(uuid.Nil.String()) || uuid.Validate(e) != nil {
			return record{}, fmt.Errorf("%.64q is not an event id", e)
		}
	}
	if len(r.Events) > maxEvents || len(r.Sequences) > maxSequences {
		return record{}, fmt.Errorf("it has %d events and %d sequences; the limits are %d and %d", len(r.Events), len(r.Sequences), maxEvents, maxSequences)
	}
	return r, nil
}

// change adds what h says and takes out events, and reports whether that
// changed anything.
func (r *record) change(h client.Handover, acknowledged []string) bool {
	events := slices.DeleteFunc(slices.Clone(r.Events), func(e string) bool { return slices.Contains(acknowledged, e) })
	events = lasting(events, h.Events, maxEvents)
	sequences := lasting(slices.Clone(r.Sequences), h.Sequences, maxSequences)
	if slices.Equal(events, r.Events) && slices.Equal(sequences, r.Sequences) {
		return false
	}
	r.Events, r.Sequences = events, sequences
	return true
}

// lasting is all of both, each once, or of too many the newest.
func lasting[T comparable](all, more []T, most int) []T {
	for _, m := range more {
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	return all[max(0, len(all)-most):]
}
