package daemon

import (
	"slices"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// forProxies is how long a call waits for a proxy. A runtime may ask a person before.
	forProxies   = 10 * time.Minute
	certainFor   = 5 * time.Second // how long a proxy without an agent's name takes a call for the hook's
	maxSightings = 10_000          // limits the number of calls that are kept for proxies
)

// A pairing finds the call that a hook asked about for a proxy that sees the same call, because some runtimes
// send MCP servers neither a session nor a call's id. The lock of flights guards it.
type pairing struct {
	open  map[string][]*sighting // by runtime and tool, oldest first; not yet seen by a proxy
	owned map[string]*sighting   // by runtime and the proxy's own id of the call
	order []*sighting            // all of them, oldest first
}

// A sighting is one tool call that a hook asked about.
type sighting struct {
	call, key, pair string // key has no phase
	own             string // the proxy's id of it; empty: no proxy has seen it
	runtime         string
	agent, session  string
	input           [2]digest
	until           time.Time
	// certain is until when a proxy without an agent takes the call for this one; zero: it is being judged.
	certain time.Time
	unclear bool // the proxy's call may be more than one call, and stays separate
}

// note keeps a call that a hook asks about, if it may be a call to an MCP server.
func (p *pairing) note(q *decide.Question, f *flight, now time.Time) {
	key, before := strings.CutPrefix(q.Key, "pre/")
	kind := q.Event.ToolKind
	if q.Apart != "" || !before || q.Pair == "" || kind != "" && kind != schema.KindMCP {
		return
	}
	if p.open == nil {
		p.open, p.owned = map[string][]*sighting{}, map[string]*sighting{}
	}
	s := &sighting{call: callOf(q.Event.Runtime, q.Event.ToolName), key: key, pair: q.Pair,
		runtime: q.Event.Runtime, agent: q.Event.AgentID, session: q.Event.SessionID, input: f.input, until: now.Add(forProxies)}
	for _, other := range p.open[s.call] {
		if other.pair == s.pair && other.agent == s.agent {
			f.seen = other // another layer asks
			return
		}
	}
	f.seen = s
	p.add(s, now)
	p.open[s.call] = append(p.open[s.call], s)
}

// add keeps a sighting, and drops old ones and those above the limit.
func (p *pairing) add(s *sighting, now time.Time) {
	for len(p.order) > 0 && (len(p.order) >= maxSightings || !p.order[0].until.After(now)) {
		p.drop(p.order[0])
		p.order[0] = nil
		p.order = p.order[1:]
	}
	p.order = append(p.order, s)
}

// decide records a hook's decision. A denied call is not made; a person may allow another one later.
func (p *pairing) decide(s *sighting, d schema.Decision, now time.Time) {
	switch asked := d == schema.Ask; {
	case schema.PreToolUse.Blocks(d), asked && !canAsk(s.runtime):
		p.drop(s)
	case asked:
		s.certain = s.until
	default:
		s.certain = now.Add(certainFor)
	}
}

// canAsk reports whether a runtime asks a person if a hook requires it, or else refuses.
func canAsk(runtime string) bool {
	d, err := dialect.For(runtime)
	if err != nil {
		return false
	}
	m, _ := dialect.At(d, schema.PreToolUse)
	return m.Can[dialect.Ask] != dialect.Impossible
}

// endTurn records that an agent no longer waits for a tool call.
func (p *pairing) endTurn(e *schema.Event, now time.Time) {
	for _, s := range p.order {
		if s.agent == e.AgentID && s.session == e.SessionID && !s.certain.IsZero() {
			s.certain = now
		}
	}
}

func (p *pairing) drop(s *sighting) {
	if s.own != "" {
		delete(p.owned, s.own)
	}
	left := slices.DeleteFunc(p.open[s.call], func(o *sighting) bool { return o == s })
	if p.open[s.call] = left; len(left) == 0 {
		delete(p.open, s.call)
	}
}

// end drops a call that no proxy has seen, after a hook has reported its result.
func (p *pairing) end(q *decide.Question) {
	if q.Apart != "" || !after(q.Event.HookType) || q.Pair == "" {
		return
	}
	for _, s := range p.open[callOf(q.Event.Runtime, q.Event.ToolName)] {
		if s.pair == q.Pair && s.agent == q.Event.AgentID {
			p.drop(s)
			return
		}
	}
}

// meet turns a proxy's question into one about the call that a hook asked about, and returns that call. If
// their names for the tool differ, the question gets only the agent and session, since hooks may match either.
func (p *pairing) meet(q *decide.Question, borrow bool, now time.Time) *sighting {
	if q.Apart == "" {
		return nil
	}
	own := callOf(q.Event.Runtime, q.Pair)
	s := p.owned[own]
	if s == nil && q.Event.HookType == schema.PreToolUse {
		if s = p.find(q, borrow, now); s != nil {
			s.own, p.owned[own] = own, s
		}
	}
	if s == nil || s.unclear {
		return s
	}
	event := *q.Event
	event.AgentID, event.SessionID = s.agent, s.session
	if event.ToolName != q.Apart {
		q.Event = &event
		return s
	}
	phase := "pre/"
	if after(event.HookType) {
		phase = "post/"
	}
	q.Event, q.Key, q.Pair, q.ByID = &event, phase+s.key, s.pair, true
	return s
}

// find returns the newest call that a proxy's question is about. If it may be about another agent's call, or
// several, find returns a new sighting that is unclear.
func (p *pairing) find(q *decide.Question, borrow bool, now time.Time) *sighting {
	var found *sighting
	unclear := false
	input, call := digestOf(q.Event.ToolInput), callOf(q.Event.Runtime, q.Apart)
	for _, s := range p.open[call] {
		switch {
		case !s.until.After(now), !slices.Contains(s.input[:], input), !borrow && s.agent != q.Event.AgentID:
			continue
		case found != nil && (found.agent != s.agent || found.session != s.session):
			unclear = true
		}
		found = s
	}
	if unclear || found != nil && found.agent != q.Event.AgentID && !found.isCertain(now) {
		found = &sighting{call: call, until: now.Add(forProxies), unclear: true}
		p.add(found, now)
		return found
	}
	if found != nil { // it stays in the order until it expires
		p.open[call] = slices.DeleteFunc(p.open[call], func(o *sighting) bool { return o == found })
	}
	return found
}

func (s *sighting) isCertain(now time.Time) bool { return s.certain.IsZero() || now.Before(s.certain) }

func callOf(runtime, name string) string { return runtime + "\x00" + name }
