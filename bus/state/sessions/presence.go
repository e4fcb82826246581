package sessions

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// writeEvery is how often an agent is written of whom there is nothing new.
	writeEvery = 2 * time.Minute
	// maxWaiting bounds the agents that wait to be written, maxKnown those that are
	// remembered here.
	maxWaiting = 1024
	maxKnown   = 100_000
	// maxField bounds what an agent says of itself.
	maxField = 256
	// nearlyFull is how much is left of a bucket that has no room for one more.
	nearlyFull = 8 << 10
	// warnEvery is how often the same trouble is spoken of.
	warnEvery = time.Minute
)

// A presence writes down who was seen, in the background.
type presence struct {
	bucket  *kv.Bucket
	log     *slog.Logger
	waiting chan string
	stop    context.CancelFunc
	ended   sync.WaitGroup

	mu    sync.Mutex // guards known, all that is in it, and the rest
	known map[string]*seen
	// missed counts those of whom nothing was noted, for there were too many.
	missed int
	// warned is when trouble in writing was last spoken of.
	warned time.Time
}

// seen is what is known here of one agent.
type seen struct {
	agent Agent
	// changed: it is not what was written last. queued: it waits to be written.
	changed, queued bool
	// at is when the agent was seen, written when that was last written. Both are
	// of this machine's clock, and only tell how long ago that is.
	at, written time.Time
}

func newPresence(bucket *kv.Bucket, log *slog.Logger) *presence {
	life, stop := context.WithCancel(context.Background())
	p := &presence{bucket: bucket, log: log, waiting: make(chan string, maxWaiting), stop: stop, known: make(map[string]*seen)}
	p.ended.Go(func() { p.run(life) })
	return p
}

func (p *presence) close() {
	p.stop()
	p.ended.Wait()
}

// Seen notes that an agent was seen. It costs no round trip.
func (s *Sessions) Seen(agent, session string) {
	if !s.presence.knew(agent, session) {
		s.presence.note(Agent{Agent: agent, Session: session})
	}
}

// knew notes that an agent was seen of whom that is all there is to note, as at
// nearly every call, and reports whether it is one.
func (p *presence) knew(agent, session string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.known[agent]
	if k == nil || k.changed || k.agent.Ended || session != "" && session != k.agent.Session {
		return false
	}
	k.at = time.Now()
	return k.at.Sub(k.written) < writeEvery
}

// Describe adds what an agent said of itself when its session started, or that it
// ended. What is empty stays what it was.
func (s *Sessions) Describe(a Agent) { s.presence.note(a) }

// note takes over what is new of an agent, and has it written if it is time.
func (p *presence) note(a Agent) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.known[a.Agent]
	if k == nil {
		if len(p.known) >= maxKnown {
			p.missed++
			return
		}
		k = &seen{agent: Agent{Agent: a.Agent}, changed: true}
		p.known[a.Agent] = k
	}
	k.at = now
	if merged := overlay(k.agent, a); merged != k.agent {
		k.agent, k.changed = merged, true
	}
	if k.queued || !k.changed && now.Sub(k.written) < writeEvery {
		return
	}
	select {
	case p.waiting <- a.Agent:
		k.queued = true
	default: // at the next call
	}
}

// overlay is what is known of an agent with what is new. The end of a session says
// nothing of an agent that is in another one.
func overlay(known, a Agent) Agent {
	if a.Ended && known.Session != "" && a.Session != known.Session {
		return known
	}
	known.Ended = a.Ended
	for _, f := range []struct {
		to   *string
		from string
	}{{&known.Session, a.Session}, {&known.Runtime, a.Runtime}, {&known.Version, a.Version}, {&known.Host, a.Host}} {
		if f.from != "" {
			*f.to = f.from[:min(len(f.from), maxField)]
		}
	}
	return known
}

// run writes who waits, and forgets who was not seen for long.
func (p *presence) run(ctx context.Context) {
	sweep := time.NewTicker(idleFor)
	defer sweep.Stop()
	for {
		select {
		case agent := <-p.waiting:
			p.write(ctx, agent)
		case <-sweep.C:
			p.sweep()
		case <-ctx.Done():
			return
		}
	}
}

func (p *presence) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.missed > 0 {
		p.log.Warn("more agents are there than one broker can note, so some are not listed", "agents", maxKnown, "calls", p.missed)
		p.missed = 0
	}
	for agent, k := range p.known {
		if !k.queued && time.Since(k.at) >= idleFor {
			delete(p.known, agent)
		}
	}
}

// write stores what is known of an agent.
func (p *presence) write(ctx context.Context, agent string) {
	p.mu.Lock()
	k := p.known[agent]
	a := k.agent
	k.queued, k.changed = false, false
	p.mu.Unlock()
	err := p.store(ctx, a)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		k.written = time.Now()
		return
	}
	k.changed = true
	if ctx.Err() == nil && time.Since(p.warned) >= warnEvery {
		p.warned = time.Now()
		p.log.Warn("that agents were seen could not be written, of whom this is one; trying again at their next calls", "agent", agent, "error", err)
	}
}

// store merges what is known here with what other brokers know, who may have
// heard more.
func (p *presence) store(ctx context.Context, a Agent) error {
	key, err := bus.Token(a.Agent)
	if err != nil {
		return err
	}
	for range 3 {
		e, err := p.bucket.Last(ctx, key)
		if err != nil {
			return err
		}
		var stored Agent
		if e.Revision > 0 && e.Kind == kv.Put {
			// What can not be read is written over.
			_ = schema.Unmarshal(e.Value, &stored)
		}
		data, err := schema.Marshal(stored.with(a))
		if err != nil {
			return err
		}
		if _, err = p.bucket.Write(ctx, kv.Write{Key: key, Value: data, Last: e.Revision}); !kv.Refused(err) {
			return err
		}
	}
	return kv.ErrContended
}

// with is what is stored of an agent with what is known here. When it was seen
// is when it is stored.
func (a Agent) with(known Agent) Agent {
	a = overlay(a, known)
	a.Agent, a.LastSeen = known.Agent, time.Time{}
	return a
}

// Lately lists the agents of a host that were seen lately, or of all hosts: first
// who is silent for the longest, last whose sessions ended. crowded: there was no
// room for all, so that who was silent for the longest may be missing.
func (s *Sessions) Lately(ctx context.Context, host string) (all []schema.AgentStatus, crowded bool, err error) {
	bucket := s.presence.bucket
	info, err := bucket.Info(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	agents, err := s.Agents(ctx)
	if err != nil {
		return nil, false, err
	}
	all = make([]schema.AgentStatus, 0, len(agents))
	for _, a := range agents {
		if host == "" || a.Host == host {
			all = append(all, schema.AgentStatus{Agent: a.Agent, Session: a.Session, Runtime: a.Runtime, Version: a.Version, Host: a.Host, Ended: a.Ended,
				Silent: schema.Duration(max(info.Now.Sub(a.LastSeen), 0))})
		}
	}
	slices.SortStableFunc(all, func(a, b schema.AgentStatus) int {
		if a.Ended != b.Ended {
			return map[bool]int{false: -1, true: 1}[a.Ended]
		}
		return cmp.Compare(b.Silent, a.Silent)
	})
	room := bucket.MaxBytes()
	return all, room > 0 && info.Bytes > room-nearlyFull, nil
}

// Agents lists the agents that were seen lately. That is written every two
// minutes, and when an agent begins a session.
func (s *Sessions) Agents(ctx context.Context) ([]Agent, error) {
	w, err := s.presence.bucket.Store().WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer func() { _ = w.Stop() }()
	// What is written meanwhile comes twice.
	all := map[string]Agent{}
	for {
		select {
		case e, open := <-w.Updates():
			if !open {
				return nil, fmt.Errorf("%w: the listing was cut off", ErrUnavailable)
			}
			if e == nil {
				return slices.SortedFunc(maps.Values(all), func(a, b Agent) int { return cmp.Compare(a.Agent, b.Agent) }), nil
			}
			var a Agent
			if err := schema.Unmarshal(e.Value(), &a); err == nil && a.Agent != "" {
				a.LastSeen = e.Created()
				all[a.Agent] = a
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
		}
	}
}

// Known is what is known here of an agent, without asking anybody; the zero Agent:
// nothing is.
func (s *Sessions) Known(agent string) Agent {
	p := s.presence
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := p.known[agent]; k != nil {
		return k.agent
	}
	return Agent{}
}
