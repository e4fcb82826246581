package sessions

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// writeEvery is the interval at which an unchanged agent is written.
	writeEvery = 2 * time.Minute
	// maxWaiting bounds the agents that wait to be written, maxKnown those in memory.
	maxWaiting = 1024
	maxKnown   = 100_000
	// maxField bounds each text about an agent, in bytes.
	maxField = 256
	// warnEvery is the interval of log lines about the same failure.
	warnEvery = time.Minute
	// storeTries bounds the attempts to write an agent that other brokers write, too.
	storeTries = 5
	// clockFor is how long an estimate of the server's time is used.
	clockFor = 5 * time.Minute
)

// A presence stores sightings of agents in the background.
type presence struct {
	bucket  *kv.Bucket
	log     *slog.Logger
	waiting chan string
	stop    context.CancelFunc
	ended   sync.WaitGroup
	// clock estimates the server's time, last updated at heard; only the goroutine that writes uses both.
	clock kv.Clock
	heard time.Time

	mu    sync.Mutex // guards the following fields
	known map[string]*seen
	// missed counts sightings that were dropped because there were too many agents.
	missed int
	// warned is the time of the last log line about a failure.
	warned time.Time
}

// seen is the local state of one agent.
type seen struct {
	agent Agent
	// changed: it differs from the written state. queued: it waits to be written.
	changed, queued bool
	// at is the local time of the last sighting, written that of the last write by any broker.
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

// Seen records a sighting of an agent, without a request.
func (s *Sessions) Seen(agent, session string) {
	if !s.presence.knew(agent, session) {
		s.presence.note(Agent{Agent: agent, Session: session})
	}
}

// knew records a sighting without news, as nearly all are, and reports whether it was one.
func (p *presence) knew(agent, session string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.known[agent]
	if k == nil || k.changed || k.agent.Ended || session != "" && bounded(session) != k.agent.Session {
		return false
	}
	k.at = time.Now()
	return k.at.Sub(k.written) < writeEvery
}

// Describe adds what an agent reported at the start or end of its session. Empty fields keep their values.
func (s *Sessions) Describe(a Agent) { s.presence.note(a) }

// note merges a sighting, and queues a write if it is due.
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
	if merged := overlay(k.agent, a); !merged.same(k.agent) {
		k.agent, k.changed = merged, true
	}
	if k.queued || !k.changed && now.Sub(k.written) < writeEvery {
		return
	}
	select {
	case p.waiting <- a.Agent:
		k.queued = true
	default: // the next sighting tries again
	}
}

// overlay merges a sighting into the known agent. It ignores the end of a session in which the agent is no longer.
func overlay(known, a Agent) Agent {
	if a.Ended && known.Session != "" && bounded(a.Session) != known.Session {
		return known
	}
	known.Ended = a.Ended
	if a.Session != "" && bounded(a.Session) != known.Session {
		known.Earlier = earlier(a.Session, append([]string{known.Session}, known.Earlier...))
	}
	known.Session, known.Runtime = latest(known.Session, a.Session), latest(known.Runtime, a.Runtime)
	known.Version, known.Host = latest(known.Version, a.Version), latest(known.Host, a.Host)
	return known
}

// latest returns the new text, cut to maxField, or the known one if it is empty.
func latest(known, text string) string { return cmp.Or(bounded(text), known) }

// bounded cuts a text to maxField.
func bounded(text string) string { return text[:min(len(text), maxField)] }

// run writes queued agents, and forgets idle ones.
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
		p.log.Warn("there are more agents than one broker can list; some are missing", "agents", maxKnown, "calls", p.missed)
		p.missed = 0
	}
	for agent, k := range p.known {
		if !k.queued && time.Since(k.at) >= idleFor {
			delete(p.known, agent)
		}
	}
}

// write stores an agent.
func (p *presence) write(ctx context.Context, agent string) {
	p.mu.Lock()
	k := p.known[agent]
	a := k.agent
	k.queued, k.changed = false, false
	p.mu.Unlock()
	age, err := p.store(ctx, a)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		k.written = time.Now().Add(-age)
		return
	}
	k.changed = true
	// An agent with many concurrent writes is listed anyway, and its news can wait.
	if ctx.Err() == nil && !errors.Is(err, kv.ErrContended) && time.Since(p.warned) >= warnEvery {
		p.warned = time.Now()
		p.log.Warn("cannot store that agents were seen, such as this one; the broker tries again at their next calls", "agent", agent, "error", err)
	}
}

// store merges the local state with the stored one, which other brokers may have extended. If another broker has just written the same, it
// only returns the age of that write.
func (p *presence) store(ctx context.Context, a Agent) (age time.Duration, err error) {
	key, err := bus.Token(a.Agent)
	if err != nil {
		return 0, err
	}
	if err := p.hear(ctx); err != nil {
		return 0, err
	}
	for i := range storeTries {
		e, err := p.bucket.Last(ctx, key)
		if err != nil {
			return 0, err
		}
		var stored Agent
		if e.Revision > 0 && e.Kind == kv.Put {
			// An invalid value is overwritten.
			_ = schema.Unmarshal(e.Value, &stored)
		}
		merged := stored.with(a)
		if age := p.clock.Age(e.Created); merged.same(stored) && age < writeEvery {
			return age, nil
		}
		data, err := schema.Marshal(merged)
		if err != nil {
			return 0, err
		}
		if _, err = p.bucket.Write(ctx, kv.Write{Key: key, Value: data, Last: e.Revision}); !kv.Refused(err) {
			return 0, err
		}
		if err := kv.Again(ctx, i); err != nil {
			return 0, err
		}
	}
	return 0, kv.ErrContended
}

// hear updates the estimate of the server's time, if that is due.
func (p *presence) hear(ctx context.Context) error {
	sent := time.Now()
	if !p.heard.IsZero() && sent.Sub(p.heard) < clockFor {
		return nil
	}
	info, err := p.bucket.Info(ctx)
	if err != nil {
		return err
	}
	p.heard = sent
	p.clock.Heard(info.Now, sent, time.Since(sent))
	return nil
}

// with merges the stored agent with the local state. LastSeen is not stored, because it is the time of the write.
func (a Agent) with(known Agent) Agent {
	before := append([]string{a.Session}, a.Earlier...)
	a = overlay(a, known)
	a.Earlier = earlier(a.Session, append(slices.Clone(known.Earlier), before...))
	a.Agent, a.LastSeen = known.Agent, time.Time{}
	return a
}

// Known returns the local state of an agent, without a request; the zero Agent: nothing is known.
func (s *Sessions) Known(agent string) Agent {
	p := s.presence
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := p.known[agent]; k != nil {
		return k.agent
	}
	return Agent{}
}
