package aggregator

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// What comes of a part of a conversation, as metrics call it.
const (
	partStored  = "stored"
	partKnown   = "known"
	partUnknown = "unknown"
	partRefused = "refused"
)

func keptResults() []string { return []string{partStored, partKnown, partUnknown, partRefused} }

// keepPart puts a part of an agent's conversation into the store of histories, or says
// whether it is there. That store has bounds of its own: when it is full, what
// waits for agents still finds room.
func (a *Aggregator) keepPart(ctx context.Context, agent string, req *schema.KeepRequest) (*schema.KeepAnswer, error) {
	store := a.opt.Memory.Histories
	switch {
	case store == nil:
		a.metrics.histories.WithLabelValues(partRefused).Inc()
		return nil, unavailable("this broker keeps no conversations")
	case len(req.Data) > schema.MaxPart:
		return nil, badRequest("data has %d bytes; a part has at most %d: cut the conversation into more", len(req.Data), schema.MaxPart)
	case len(req.Data) == 0 && req.Digest == "":
		return nil, badRequest("there is neither data nor a digest; send a part of the conversation, or ask for one")
	case len(req.Data) == 0:
		return a.known(ctx, agent, schema.Object{Digest: req.Digest, Size: req.Size})
	case !a.allowed.take(agent, int64(len(req.Data)), time.Now()):
		a.metrics.histories.WithLabelValues(partRefused).Inc()
		return nil, unavailable(fmt.Sprintf("the agent has stored %d MiB of conversations within %s, and may not store more until that is over; "+
			"store what is new only", allowedMost>>20, allowedFor))
	}
	o, err := store.Put(ctx, bytes.NewReader(req.Data))
	if err != nil {
		a.unstoredPart(agent, err)
		return nil, err
	}
	a.metrics.histories.WithLabelValues(partStored).Inc()
	a.unkept.over()
	if req.Digest != "" && req.Digest != o.Digest {
		return nil, badRequest("data is %s and not the %.80q that the request says", o.Digest, req.Digest)
	}
	return &schema.KeepAnswer{Digest: o.Digest, Size: o.Size, Known: true}, nil
}

// known says whether a part is there, for long enough to be named.
func (a *Aggregator) known(ctx context.Context, agent string, o schema.Object) (*schema.KeepAnswer, error) {
	fresh, err := a.opt.Memory.Histories.Fresh(ctx, o)
	if err != nil {
		a.unstoredPart(agent, err)
		return nil, err
	}
	result := partUnknown
	if fresh {
		result = partKnown
	}
	a.metrics.histories.WithLabelValues(result).Inc()
	return &schema.KeepAnswer{Digest: o.Digest, Size: o.Size, Known: fresh}, nil
}

// toldOfPart is how much of a part one answer has: what a server takes that was not
// told to take more.
const toldOfPart = 512 << 10

// storedPart reads a part of a conversation, for the workers. Whoever names its digest
// had an event that names it.
func (a *Aggregator) storedPart(ctx context.Context, agent string, req *schema.PartRequest) (*schema.FetchAnswer, error) {
	store := a.opt.Memory.Histories
	switch {
	case agent != "":
		return nil, badRequest("a part is known by its digest alone; ask on hook.v1.ctl.%s._", schema.VerbPart)
	case store == nil:
		return nil, unavailable("this broker keeps no conversations")
	}
	data, size, err := store.Part(ctx, req.Digest, req.Offset)
	if err != nil {
		return nil, err
	}
	return &schema.FetchAnswer{Data: data[:min(len(data), toldOfPart)], Size: size}, nil
}

// unstoredPart counts a part that could not be stored, and says it once.
func (a *Aggregator) unstoredPart(agent string, err error) {
	a.metrics.histories.WithLabelValues(partRefused).Inc()
	a.opt.Logger.Debug("a part of a conversation was not stored", "agent", agent, "error", err)
	a.unkept.begun(err)
}

const (
	// allowedMost is how many bytes of conversations one agent may store by one broker
	// within allowedFor: the longest one twice. The store is everybody's, and what is
	// in it stays for longer than that.
	allowedMost = 2 * schema.MaxHistory
	allowedFor  = time.Hour
	// allowedAgents bounds the agents that are counted.
	allowedAgents = 10_000
)

// An allowance counts what agents store, so that one of them which stores without
// end takes no room from the others. The zero allowance has counted nothing.
type allowance struct {
	mu     sync.Mutex // guards agents
	agents map[string]stint
}

// A stint is what one agent has stored since it began.
type stint struct {
	began time.Time
	bytes int64
}

// take reports whether an agent may store so many bytes, and counts them if so.
func (l *allowance) take(agent string, bytes int64, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, known := l.agents[agent]
	if now.Sub(s.began) >= allowedFor {
		s = stint{began: now}
	}
	if s.bytes += bytes; s.bytes > allowedMost {
		return false
	}
	if l.agents == nil {
		l.agents = map[string]stint{}
	}
	if !known && len(l.agents) >= allowedAgents {
		l.room(now)
	}
	l.agents[agent] = s
	return true
}

// room forgets those whose time is over, or else whoever has stored least: one of
// many names that nobody else uses must not make others forgotten.
func (l *allowance) room(now time.Time) {
	maps.DeleteFunc(l.agents, func(_ string, s stint) bool { return now.Sub(s.began) >= allowedFor })
	if len(l.agents) < allowedAgents {
		return
	}
	least := ""
	for agent, s := range l.agents {
		if least == "" || s.bytes < l.agents[least].bytes {
			least = agent
		}
	}
	delete(l.agents, least)
}
