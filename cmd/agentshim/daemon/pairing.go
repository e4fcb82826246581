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
	// forProxies is how long a call waits for a proxy to see it: before it is made, a
	// person may be asked.
	forProxies = 10 * time.Minute
	// certainFor is how long after a hook's verdict a proxy of an agent without a name takes
	// the call for the hook's: the runtime makes the call at once.
	certainFor = 5 * time.Second
	// maxSightings bounds the calls that are kept for proxies.
	maxSightings = 10_000
)

// A pairing finds the call that a hook asked about for a proxy that sees the same call:
// Gemini CLI, Copilot, Qwen Code and OpenCode tell MCP servers neither a session nor the
// id of a call. The lock of flights guards it.
type pairing struct {
	open  map[string][]*sighting // by runtime and tool, oldest first: no proxy has seen them
	owned map[string]*sighting   // by runtime and the proxy's own name of the call
	order []*sighting            // all of them, oldest first
}

// A sighting is one tool call that a hook asked about.
type sighting struct {
	call, key, pair string // key is without its phase
	own             string // the proxy's name of it; empty: none has seen it
	runtime         string
	agent, session  string
	input           [2]digest
	until           time.Time
	// certain is until when a proxy that does not know its agent takes the call for this
	// one; zero: its hook waits for the verdict.
	certain time.Time
	// unclear: more than one call could be meant, so that the proxy stays for itself.
	unclear bool
}

// note keeps a call that a hook asks about, if it may be one of an MCP server.
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

// add forgets what is too old, or too much.
func (p *pairing) add(s *sighting, now time.Time) {
	for len(p.order) > 0 && (len(p.order) >= maxSightings || !p.order[0].until.After(now)) {
		p.drop(p.order[0])
		p.order[0] = nil
		p.order = p.order[1:]
	}
	p.order = append(p.order, s)
}

// decide notes what a hook was told of a call. A call that is refused is not made. One that a
// person decides on may be made for as long as it is kept.
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

// canAsk reports whether a runtime has a person decide where hooks ask for it; the others
// refuse the call.
func canAsk(runtime string) bool {
	d, err := dialect.For(runtime)
	if err != nil {
		return false
	}
	m, _ := dialect.At(d, schema.PreToolUse)
	return m.Can[dialect.Ask] != dialect.Impossible
}

// endTurn notes that an agent waits for no tool call any more.
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

// end forgets a call that no proxy has seen, once a hook says what came of it.
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

// meet makes a proxy's question one about the call that a hook asked about; nil: there is
// none. Where the two have other names for the tool, the proxy's question stays one of its own, since
// hooks of the fabric may match either name: it is about the agent and the session of that call.
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

// find is the newest call that a proxy's question is about; nil: there is none. Where it may be
// about another agent's call, or about one of several, it is unclear.
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
	if found != nil { // it stays in the order, and is forgotten with it
		p.open[call] = slices.DeleteFunc(p.open[call], func(o *sighting) bool { return o == found })
	}
	return found
}

// isCertain reports whether a call with the same tool and input is taken for this one.
func (s *sighting) isCertain(now time.Time) bool { return s.certain.IsZero() || now.Before(s.certain) }

func callOf(runtime, name string) string { return runtime + "\x00" + name }
