package schema

import "strings"

// Picks reports for each message whether d removes it. A call and its results always go
// together, because model APIs reject one without the other. A call without a result stays, and
// so do the other results of its message.
func (d *DropMessages) Picks(messages []Message) []bool {
	picked := make([]bool, len(messages))
	var fit []int
	for i := range messages {
		if d.fits(&messages[i]) {
			fit = append(fit, i)
		}
	}
	switch {
	case d.First > 0 && d.First < len(fit):
		fit = fit[:d.First]
	case d.Last > 0 && d.Last < len(fit):
		fit = fit[len(fit)-d.Last:]
	}
	for _, i := range fit {
		picked[i] = true
	}
	for _, t := range turns(messages) {
		t.join(picked)
	}
	return picked
}

// Apply returns the messages that d does not pick. It does not change its argument.
func (d *DropMessages) Apply(messages []Message) []Message {
	kept := make([]Message, 0, len(messages))
	for i, picked := range d.Picks(messages) {
		if !picked {
			kept = append(kept, messages[i])
		}
	}
	return kept
}

// fits reports whether m satisfies all members of d that are about one message.
func (d *DropMessages) fits(m *Message) bool {
	if m.Role == RoleSystem && d.Role != RoleSystem || d.Role != "" && m.Role != d.Role {
		return false
	}
	return d.Containing == "" || m.contains(d.Containing)
}

// contains reports whether a text of m, or of its result, contains part.
func (m *Message) contains(part string) bool {
	if strings.Contains(m.Content, part) {
		return true
	}
	if m.Result == nil {
		return false
	}
	text := string(m.Result.Output)
	if m.Result.Output.Kind() == '"' && Unmarshal(m.Result.Output, &text) != nil {
		text = string(m.Result.Output)
	}
	return strings.Contains(text, part) || strings.Contains(m.Result.Error, part)
}

// A turn is a message with calls and the results after it.
type turn struct {
	members []int
	// open means that some call has no result yet.
	open bool
}

// join picks all of t's messages if one is picked, or none if a call is open.
func (t *turn) join(picked []bool) {
	some := false
	for _, i := range t.members {
		some = some || picked[i]
	}
	for _, i := range t.members {
		picked[i] = some && !t.open
	}
}

// turns finds the calls and their results. Results follow their calls, before the next
// message with calls. Which result belongs to which call does not matter, because turns
// are removed whole. A result without a call before it belongs to no turn.
func turns(messages []Message) []turn {
	var all []turn
	for i := range messages {
		m := &messages[i]
		switch {
		case len(m.ToolCalls) > 0:
			all = append(all, turn{members: []int{i}})
		case m.Result != nil && len(all) > 0:
			last := &all[len(all)-1]
			last.members = append(last.members, i)
		}
	}
	for i := range all {
		t := &all[i]
		t.open = len(t.members)-1 < len(messages[t.members[0]].ToolCalls)
	}
	return all
}
