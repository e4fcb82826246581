package record

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/match"
)

// A Filter selects records. The zero Filter selects all.
type Filter struct {
	agent, tool, hook *match.Matcher
	decision          schema.Decision
	event             schema.EventType
	since, until      time.Time
	// needles are in every selected line, so that most other lines need not be decoded.
	needles [][]byte
}

// A Wish describes a filter; empty fields select all.
type Wish struct {
	// Agent, Tool and Hook are matcher patterns. Hook selects records of calls for which such a hook ran.
	Agent, Tool, Hook string
	Decision          schema.Decision
	Event             schema.EventType
	// Since and Until are the first time of a verdict, and the first time after the last one.
	Since, Until time.Time
}

// NewFilter returns the filter of a wish.
func NewFilter(w Wish) (*Filter, error) {
	f := &Filter{decision: w.Decision, event: w.Event, since: w.Since, until: w.Until}
	for _, p := range []struct {
		name, pattern string
		to            **match.Matcher
	}{{"agent", w.Agent, &f.agent}, {"tool", w.Tool, &f.tool}, {"hook", w.Hook, &f.hook}} {
		if p.pattern == "" {
			continue
		}
		m, err := match.Compile(p.pattern)
		if err != nil {
			return nil, fmt.Errorf("the pattern of the %s: %w", p.name, err)
		}
		*p.to = m
		if names, ok := m.Exact(); ok && len(names) == 1 {
			f.need(p.name, names[0])
		}
	}
	if w.Decision != "" {
		f.need("decision", string(w.Decision))
	}
	if w.Event != "" {
		f.need("event", string(w.Event))
	}
	return f, nil
}

// need makes Pick skip lines without this text. The text may also be in another member, so the filter checks decoded lines.
func (f *Filter) need(member, value string) {
	if text, err := schema.Marshal(value); err == nil {
		f.needles = append(f.needles, append([]byte(`"`+member+`":`), text...))
	}
}

// Pick decodes a line if the filter selects it; nil: it does not. stored is the time of the line's message.
func (f *Filter) Pick(line []byte, stored time.Time) (*schema.Record, error) {
	for _, n := range f.needles {
		if !bytes.Contains(line, n) {
			return nil, nil //nolint:nilnil // not selected
		}
	}
	rec := new(schema.Record)
	if err := schema.Unmarshal(line, rec); err != nil {
		return nil, fmt.Errorf("a record cannot be read: %w", err)
	}
	if !f.Wants(rec, stored) {
		return nil, nil //nolint:nilnil // not selected
	}
	return rec, nil
}

// Wants reports whether the filter selects a record.
func (f *Filter) Wants(rec *schema.Record, stored time.Time) bool {
	at := rec.Time
	if rec.Unjudged {
		at = stored // the time of the shim's report
	}
	fits := func(m *match.Matcher, name string) bool { return m == nil || m.Match(name) }
	switch {
	case !f.since.IsZero() && at.Before(f.since), !f.until.IsZero() && !at.Before(f.until):
	case f.decision != "" && rec.Decision != f.decision, f.event != "" && rec.Event != f.event:
	case !fits(f.agent, rec.Agent), !fits(f.tool, rec.Tool):
	case f.hook != nil && !slices.ContainsFunc(rec.ExecutedHooks, func(x schema.ExecutedHook) bool { return f.hook.Match(x.Hook) }):
	default:
		return true
	}
	return false
}
