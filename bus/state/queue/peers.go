package queue

import (
	"maps"
	"reflect"
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

// maxSessions bounds the sessions whose peers a cursor remembers: those with the latest changes.
const maxSessions = 16

// memory is what a cursor has about other agents: what applies to all sessions, and what applies to one. Earlier releases
// wrote what an agent saw without its session, which is ignored: see [cursor.peersIn].
type memory struct {
	Round      uint64 `json:"round,omitzero"`
	Updates    int    `json:"updates,omitzero"`
	VoteOnly   bool   `json:"vote_only,omitzero"`
	Checkpoint uint64 `json:"checkpoint,omitzero"`
	// Sessions are in the order of their last change, newest last.
	Sessions []sessionMemory `json:"sessions,omitzero"`
}

// sessionMemory is the part for one session.
type sessionMemory struct {
	Session    string            `json:"session"`
	Seen       map[string]string `json:"seen,omitzero"`
	Checkpoint uint64            `json:"checkpoint,omitzero"`
	Answers    int               `json:"answers,omitzero"`
	Checked    int               `json:"checked,omitzero"`
}

// peers returns what the agent knows about others in a session; false: nothing was noted in it. The caller may change the
// result.
func (m *memory) peers(session string) (schema.Peers, bool) {
	p := schema.Peers{Round: m.Round, Updates: m.Updates, VoteOnly: m.VoteOnly, Checkpoint: m.Checkpoint}
	i := m.find(session)
	if i < 0 {
		return p, false
	}
	s := &m.Sessions[i]
	p.Seen, p.Answers, p.Checked = maps.Clone(s.Seen), s.Answers, s.Checked
	p.Checkpoint = max(p.Checkpoint, s.Checkpoint)
	return p, true
}

func (m *memory) find(session string) int {
	return slices.IndexFunc(m.Sessions, func(s sessionMemory) bool { return s.Session == session })
}

// note stores what the agent knows in a session; without a session, what applies to all.
func (m *memory) note(session string, p *schema.Peers) {
	m.Round, m.Updates, m.VoteOnly = p.Round, p.Updates, p.VoteOnly
	if session == "" {
		m.Checkpoint = p.Checkpoint
		return
	}
	s := sessionMemory{Session: session, Seen: p.Seen, Answers: p.Answers, Checked: p.Checked}
	if p.Checkpoint > m.Checkpoint {
		s.Checkpoint = p.Checkpoint
	}
	i := m.find(session)
	if i < 0 && len(s.Seen) == 0 && s.Checkpoint == 0 && s.Answers == 0 && s.Checked == 0 {
		return
	}
	if i >= 0 {
		m.Sessions = slices.Delete(m.Sessions, i, i+1)
	}
	m.Sessions = append(m.Sessions, s)
	m.Sessions = m.Sessions[max(0, len(m.Sessions)-maxSessions):]
}

// without returns what was known in a session before the oldest of some of its leases, without the updates that their events
// counted. Other state that applies to all sessions stays, because events of other sessions may have changed it since.
func (m *memory) without(leases ...*lease) schema.Peers {
	p := leases[0].Peers.Clone()
	p.Round, p.Updates, p.VoteOnly = m.Round, m.Updates, m.VoteOnly
	for _, l := range leases {
		if l.Round == m.Round {
			p.Updates = max(0, p.Updates-l.Updates)
		}
	}
	return p
}

// rewind removes everything after the last sequence.
func (m *memory) rewind(last uint64) {
	m.Checkpoint = min(m.Checkpoint, last)
	for i := range m.Sessions {
		m.Sessions[i].Checkpoint = min(m.Sessions[i].Checkpoint, last)
	}
}

func (m *memory) clone() memory {
	n := *m
	n.Sessions = slices.Clone(m.Sessions) // the maps in it are replaced, never changed
	return n
}

// peersIn returns what the agent called name knows about others in a session. If nothing is noted, as after an update from an
// earlier release and for sessions beyond [maxSessions], the session's items show what the agent has seen.
func (c *cursor) peersIn(session, name string, v *view) schema.Peers {
	p, noted := c.Peers.peers(session)
	if noted {
		return p
	}
	for _, e := range v.session {
		if a := e.item.Answer; a != nil && c.done(e) && c.meant(e, name) {
			if p.Seen == nil {
				p.Seen = make(map[string]string)
			}
			read := a.For(name)
			p.Seen[read.Name] = read.Label
		}
	}
	return p
}

// samePeers reports whether both are equal.
func samePeers(a, b schema.Peers) bool {
	if len(a.Seen) == 0 && len(b.Seen) == 0 {
		a.Seen, b.Seen = nil, nil
	}
	return reflect.DeepEqual(a, b)
}
