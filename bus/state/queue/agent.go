package queue

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// maxAckedEvents bounds the acknowledged events that are remembered.
const maxAckedEvents = 32

// An agent is what this process knows about one agent.
type agent struct {
	name, token string
	scope       string // the first token of the keys of its own items
	// turn holds a token while this process changes the cursor, so that it does not lose a
	// compare-and-set against itself.
	turn chan struct{}
	// cursor is the newest known revision; never nil.
	cursor atomic.Pointer[known]
	// first is the first sequence after this process saw the agent, until the cursor has it; 0: this
	// process has not seen it.
	first atomic.Uint64
	// session is the last session in which it was seen.
	session atomic.Pointer[sessionOf]
	// due: a write of the cursor is scheduled because the agent was seen.
	due atomic.Bool

	mu          sync.Mutex // guards the writes of cursor, and ackedEvents
	ackedEvents []string   // acknowledged events, newest last
}

// sessionOf is a session, with the first token of the keys of its items.
type sessionOf struct{ name, scope string }

// scopeOf returns the first token of the keys of a session's items; empty: it has no items.
func (a *agent) scopeOf(session string) string {
	if session == "" {
		return ""
	}
	if s := a.session.Load(); s != nil && s.name == session {
		return s.scope
	}
	scope, err := scopeToken(schema.Scope{Session: session})
	if err != nil {
		return ""
	}
	return scope
}

// known is a known revision of a cursor.
type known struct {
	cursor
	revision uint64
	// seen is when this process first saw the revision. The remaining times of leases count from it.
	seen time.Time
	// created is when it was stored, by the server's clock.
	created time.Time
	// bad is why it cannot be decoded; nil: it can.
	bad error
}

// take stores a revision if it is newer than the known one.
func (a *agent) take(k *known) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k.revision > a.cursor.Load().revision {
		a.cursor.Store(k)
	}
}

// since returns the first sequence after the agent was first seen; 0: it was never seen.
func (a *agent) since(c *cursor) uint64 {
	if c.Since > 0 {
		return c.Since
	}
	return a.first.Load()
}

// rememberAcked remembers events that are acknowledged.
func (a *agent) rememberAcked(events []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range events {
		if !slices.Contains(a.ackedEvents, id) {
			a.ackedEvents = append(a.ackedEvents, id)
		}
	}
	if n := len(a.ackedEvents); n > maxAckedEvents {
		a.ackedEvents = slices.Clone(a.ackedEvents[n-maxAckedEvents:])
	}
}

// unacked returns the events that may still need an acknowledgement, and whether the known cursor lacks
// the lease of one of them.
func (a *agent) unacked(events []string) (some []string, unknown bool) {
	c := a.cursor.Load()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range events {
		if id == "" || slices.Contains(a.ackedEvents, id) {
			continue
		}
		some = append(some, id)
		unknown = unknown || c.of(id) == nil
	}
	return some, unknown
}

// lock waits for the right to change the cursor.
func (a *agent) lock(ctx context.Context) error {
	select {
	case a.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: waiting for another change of the agent's cursor: %w", ErrUnavailable, context.Cause(ctx))
	}
}

func (a *agent) unlock() { <-a.turn }

// agents are the known agents.
type agents struct {
	mu  sync.RWMutex // guards all
	all map[string]*agent
}

// find returns the agent, or nil if it is unknown.
func (g *agents) find(name string) *agent {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.all[name]
}

// get returns the agent, a new one if it is unknown.
func (g *agents) get(name string) (*agent, error) {
	if a := g.find(name); a != nil {
		return a, nil
	}
	tok, err := bus.Token(name)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.all[name]; a != nil {
		return a, nil
	}
	a := &agent{name: name, token: tok, scope: agentScope + tok, turn: make(chan struct{}, 1)}
	a.cursor.Store(new(known))
	g.all[name] = a
	return a, nil
}

// forget removes the agent whose cursor ended at the revision. A concurrent change of the cursor loses a
// compare-and-set at worst.
func (g *agents) forget(key string, revision uint64) {
	name, err := bus.ParseToken(key)
	if err != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.all[name]; a != nil && a.cursor.Load().revision < revision {
		delete(g.all, name)
	}
}

// each calls f for each agent.
func (g *agents) each(f func(*agent)) {
	g.mu.RLock()
	all := make([]*agent, 0, len(g.all))
	for _, a := range g.all {
		all = append(all, a)
	}
	g.mu.RUnlock()
	for _, a := range all {
		f(a)
	}
}

// take stores a revision of a cursor from the bucket.
func (g *agents) take(e kv.Entry, clock *kv.Clock) (*agent, error) {
	name, err := bus.ParseToken(e.Key)
	if err != nil {
		return nil, fmt.Errorf("the key %.300s is not a cursor key: %w", e.Key, err)
	}
	a, err := g.get(name)
	if err != nil {
		return nil, err
	}
	k := knownOf(e, clock)
	a.take(k)
	return a, k.bad
}

// knownOf decodes a revision of a cursor. A deleted key is an empty cursor. The remaining times of leases count
// from the server's time of the write, so that a restart of this process does not extend them.
func knownOf(e kv.Entry, clock *kv.Clock) *known {
	k := &known{revision: e.Revision, seen: time.Now(), created: e.Created}
	if !e.Created.IsZero() {
		k.seen = k.seen.Add(-min(clock.Age(e.Created), LeaseFor))
	}
	if e.Kind != kv.Put || e.Revision == 0 {
		return k
	}
	if k.cursor, k.bad = readCursor(e.Value); k.bad != nil {
		k.bad = fmt.Errorf("the cursor %.300s cannot be read; was it written by a newer release? %w", e.Key, k.bad)
	}
	return k
}
