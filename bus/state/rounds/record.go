package rounds

import (
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// A record is a round as it is stored.
type record struct {
	Number     int              `json:"number"`
	Initial    *schema.Duration `json:"initial,omitzero"`
	Subsequent *schema.Duration `json:"subsequent,omitzero"`
	Grace      schema.Duration  `json:"grace"`
	// ID is made by who starts the round, to know it again when the answer to the
	// write was lost.
	ID string `json:"id"`
	// Start is the revision of the round's first write and Started when that was
	// stored. Both are absent there, where they are the entry's own.
	Start   uint64    `json:"start,omitzero"`
	Started time.Time `json:"started,omitzero"`
	WrapUp  bool      `json:"wrap_up,omitzero"`
	// Warned: the soft warning was handed over, at WarnedAt; where that is absent,
	// when the entry was stored.
	Warned   bool      `json:"warned,omitzero"`
	WarnedAt time.Time `json:"warned_at,omitzero"`
	// WarningEvent is the event whose verdict brought the soft warning, without the queue, the last
	// time, and WarningAt when that was; where that is absent, when the entry was stored.
	WarningEvent string    `json:"warning_event,omitzero"`
	WarningAt    time.Time `json:"warning_at,omitzero"`
	// Denied are the events of the calls that were refused one after the other.
	Denied    []string `json:"denied,omitzero"`
	Terminate bool     `json:"terminate,omitzero"`

	// revision and stored are the entry's.
	revision uint64
	stored   time.Time
}

// read is the record in an entry; nil: it holds none that can be read.
func read(e kv.Entry) *record {
	if e.Revision == 0 || e.Kind != kv.Put {
		return nil
	}
	rec := new(record)
	if err := schema.Unmarshal(e.Value, rec); err != nil || !rec.sound() {
		return nil
	}
	return rec.at(e.Revision, e.Created)
}

// sound reports whether it is one that was written here.
func (rec *record) sound() bool {
	for _, d := range []*schema.Duration{rec.Initial, rec.Subsequent, &rec.Grace} {
		if d != nil && *d < 0 {
			return false
		}
	}
	return rec.Number >= 0 && len(rec.Denied) <= MaxDenials
}

// at fills in what the entry itself says.
func (rec *record) at(revision uint64, stored time.Time) *record {
	rec.revision, rec.stored = revision, stored
	if rec.Start == 0 {
		rec.Start, rec.Started = revision, stored
	}
	if rec.Warned && rec.WarnedAt.IsZero() {
		rec.WarnedAt = stored
	}
	if rec.WarningEvent != "" && rec.WarningAt.IsZero() {
		rec.WarningAt = stored
	}
	return rec
}

// copy is a record that may be changed and written.
func (rec *record) copy() *record {
	c := *rec
	c.Denied = slices.Clone(rec.Denied)
	return &c
}

// deny counts a refused call. When the run is to end, there is nothing left to
// count. It reports whether anything changed.
func (rec *record) deny(event string) bool {
	if rec.Terminate || slices.Contains(rec.Denied, event) {
		return false
	}
	rec.Denied = append(rec.Denied, event)
	rec.Terminate = len(rec.Denied) >= MaxDenials
	return true
}

// round is what others see of it now.
func (rec *record) round(agent string, clock *kv.Clock) schema.Round {
	r := schema.Round{
		Agent: agent, Start: rec.Start, Number: rec.Number, Initial: rec.Initial, Subsequent: rec.Subsequent, Grace: rec.Grace,
		Elapsed: schema.Duration(clock.Age(rec.Started)), WrapUp: rec.WrapUp, Warned: rec.Warned,
		Denials: len(rec.Denied), Terminate: rec.Terminate,
	}
	if rec.Warned {
		r.Since = schema.Duration(clock.Age(rec.WarnedAt))
	}
	return r
}
