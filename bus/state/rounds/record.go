package rounds

import (
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// A record is the stored form of a round.
type record struct {
	Number     int              `json:"number"`
	Initial    *schema.Duration `json:"initial,omitzero"`
	Subsequent *schema.Duration `json:"subsequent,omitzero"`
	Grace      schema.Duration  `json:"grace"`
	// ID is a random id, with which a writer recognises its own write after a lost answer.
	ID string `json:"id"`
	// Start is the revision of the round's first write, and Started its time. Both are absent in that write
	// itself.
	Start   uint64    `json:"start,omitzero"`
	Started time.Time `json:"started,omitzero"`
	WrapUp  bool      `json:"wrap_up,omitzero"`
	// Warned: the warning was delivered, at WarnedAt; absent: at the time of the entry.
	Warned   bool      `json:"warned,omitzero"`
	WarnedAt time.Time `json:"warned_at,omitzero"`
	// WarningEvent is the last event whose verdict delivered the warning, at WarningAt; absent: at the time of
	// the entry.
	WarningEvent string    `json:"warning_event,omitzero"`
	WarningAt    time.Time `json:"warning_at,omitzero"`
	// Denied are the events of the calls that were denied in a row.
	Denied    []string `json:"denied,omitzero"`
	Terminate bool     `json:"terminate,omitzero"`

	// revision and stored are those of the entry.
	revision uint64
	stored   time.Time
}

// read decodes an entry; nil: it has no valid record.
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

// sound reports whether the record is valid.
func (rec *record) sound() bool {
	for _, d := range []*schema.Duration{rec.Initial, rec.Subsequent, &rec.Grace} {
		if d != nil && *d < 0 {
			return false
		}
	}
	return rec.Number >= 0 && len(rec.Denied) <= MaxDenials
}

// at sets the fields that depend on the entry.
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

// copy returns a deep copy.
func (rec *record) copy() *record {
	c := *rec
	c.Denied = slices.Clone(rec.Denied)
	return &c
}

// deny counts a denied call, unless the run must end. It reports whether the record changed.
func (rec *record) deny(event string) bool {
	if rec.Terminate || slices.Contains(rec.Denied, event) {
		return false
	}
	rec.Denied = append(rec.Denied, event)
	rec.Terminate = len(rec.Denied) >= MaxDenials
	return true
}

// round returns the round at this moment.
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
