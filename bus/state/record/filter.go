package record

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/match"
)

// A Filter picks records. The zero Filter picks all.
type Filter struct {
	agent, tool, hook *match.Matcher
	decision          schema.Decision
	event             schema.EventType
	since, until      time.Time
	// needles stand in every line that is picked: most lines need not be read to see
	// that they are not.
	needles [][]byte
}

// A Wish is what a filter is to pick; what is empty picks all.
type Wish struct {
	// Agent, Tool and Hook are patterns of the one matcher. A record has a hook if one
	// of that name was asked.
	Agent, Tool, Hook string
	Decision          schema.Decision
	Event             schema.EventType
	// Since and Until bound the time of the verdict: from then on, and before then.
	Since, Until time.Time
}

// NewFilter reads a wish.
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

// need has lines without a member of this value left out unread. It may stand in
// another member's place, too: what is read is looked at again.
func (f *Filter) need(member, value string) {
	if text, err := schema.Marshal(value); err == nil {
		f.needles = append(f.needles, append([]byte(`"`+member+`":`), text...))
	}
}

// Pick reads a line if it is one that is wanted; nil: it is not. A line that cannot
// be read is an error. stored is when the line's message was.
func (f *Filter) Pick(line []byte, stored time.Time) (*schema.Record, error) {
	for _, n := range f.needles {
		if !bytes.Contains(line, n) {
			return nil, nil //nolint:nilnil // nothing is wanted of it
		}
	}
	rec := new(schema.Record)
	if err := schema.Unmarshal(line, rec); err != nil {
		return nil, fmt.Errorf("a record cannot be read: %w", err)
	}
	if !f.Wants(rec, stored) {
		return nil, nil //nolint:nilnil // nothing is wanted of it
	}
	return rec, nil
}

// Wants reports whether a record is one that is picked.
func (f *Filter) Wants(rec *schema.Record, stored time.Time) bool {
	at := rec.Time
	if rec.Unjudged {
		at = stored // when it became known: its shim could not say so before
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
