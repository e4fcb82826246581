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

// settledEvents is how many events are remembered that need no acknowledgement.
const settledEvents = 32

// An agent is what this process knows of one.
type agent struct {
	name, token string
	scope       string // the first token of the keys of its own items
	// turn holds a token while this process changes the cursor: it need not lose a
	// compare-and-set against itself.
	turn chan struct{}
	// cursor is what is known of it; never nil.
	cursor atomic.Pointer[known]
	// first is the first sequence that was not there when the agent was seen here
	// first, for as long as its cursor does not say; 0: it was not seen here.
	first atomic.Uint64
	// session is the one it was seen in last.
	session atomic.Pointer[sessionOf]
	// due: its cursor is about to be written because it was seen.
	due atomic.Bool

	mu      sync.Mutex // guards the writes of cursor, and settled
	settled []string   // events that were acknowledged, newest last
}

// sessionOf is a session, and the first token of the keys of its items.
type sessionOf struct{ name, scope string }

// scopeOf is the first token of the keys of a session's items; empty: it has
// none.
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

// known is a revision of a cursor.
type known struct {
	cursor
	revision uint64
	// seen is when it was seen here first: leases count from then.
	seen time.Time
	// created is when it was stored, by the server's clock.
	created time.Time
	// bad is why it cannot be read; nil: it can.
	bad error
}

// take keeps what is newer than what is known.
func (a *agent) take(k *known) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k.revision > a.cursor.Load().revision {
		a.cursor.Store(k)
	}
}

// since is the first sequence that was not there when the agent was first seen;
// 0: it was never seen.
func (a *agent) since(c *cursor) uint64 {
	if c.Since > 0 {
		return c.Since
	}
	return a.first.Load()
}

// settle remembers that events need no acknowledgement any more.
func (a *agent) settle(events []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range events {
		if !slices.Contains(a.settled, id) {
			a.settled = append(a.settled, id)
		}
	}
	if n := len(a.settled); n > settledEvents {
		a.settled = slices.Clone(a.settled[n-settledEvents:])
	}
}

// unsettled are the events that may still need an acknowledgement, and unknown
// says that the cursor that is known here names one of them not.
func (a *agent) unsettled(events []string) (some []string, unknown bool) {
	c := a.cursor.Load()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range events {
		if id == "" || slices.Contains(a.settled, id) {
			continue
		}
		some = append(some, id)
		unknown = unknown || c.of(id) == nil
	}
	return some, unknown
}

// lock takes the turn to change the cursor.
func (a *agent) lock(ctx context.Context) error {
	select {
	case a.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: waiting for another change of the agent's cursor: %w", ErrUnavailable, context.Cause(ctx))
	}
}

func (a *agent) unlock() { <-a.turn }

// agents are those that are known.
type agents struct {
	mu  sync.RWMutex // guards all
	all map[string]*agent
}

// find returns the agent, or nil if it was never heard of.
func (g *agents) find(name string) *agent {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.all[name]
}

// get returns the agent, which is new if it was never heard of.
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

// forget takes out the agent whose cursor ended at the revision: agents come and
// go. Who is at work for it loses a compare-and-set at worst.
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

// each calls f for all.
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

// take keeps a revision of a cursor that the bucket told of.
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

// knownOf reads a revision of a cursor. A key that ended is an empty one. Its
// leases count from when the server stored it, by the server's own clock: who
// starts anew does not begin them anew.
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
