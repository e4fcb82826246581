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
	// writeEvery is how often an agent is written of whom there is nothing new.
	writeEvery = 2 * time.Minute
	// maxWaiting bounds the agents that wait to be written, maxKnown those that are
	// remembered here.
	maxWaiting = 1024
	maxKnown   = 100_000
	// maxField bounds what an agent says of itself.
	maxField = 256
	// warnEvery is how often the same trouble is spoken of.
	warnEvery = time.Minute
	// storeTries is how often an agent is tried to be written that others write, too.
	storeTries = 5
	// clockFor is how long the server's time is told by what was heard of it.
	clockFor = 5 * time.Minute
)

// A presence writes down who was seen, in the background.
type presence struct {
	bucket  *kv.Bucket
	log     *slog.Logger
	waiting chan string
	stop    context.CancelFunc
	ended   sync.WaitGroup
	// clock tells the server's time, which was heard of last at that time; only the
	// writing looks.
	clock kv.Clock
	heard time.Time

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
	// at is when the agent was seen, written when that was last written, by this broker
	// or another. Both are of this machine's clock, and only tell how long ago that is.
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
	if k == nil || k.changed || k.agent.Ended || session != "" && bounded(session) != k.agent.Session {
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
	if merged := overlay(k.agent, a); !merged.same(k.agent) {
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

// latest returns as much of what is new as is remembered, or what is known if nothing is new.
func latest(known, text string) string { return cmp.Or(bounded(text), known) }

// bounded returns as much of a text as is remembered.
func bounded(text string) string { return text[:min(len(text), maxField)] }

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
		p.log.Warn("there are more agents than one broker can list; some are missing", "agents", maxKnown, "calls", p.missed)
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
	age, err := p.store(ctx, a)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		k.written = time.Now().Add(-age)
		return
	}
	k.changed = true
	// Who is written by others all the time is listed, and what is new of it can wait.
	if ctx.Err() == nil && !errors.Is(err, kv.ErrContended) && time.Since(p.warned) >= warnEvery {
		p.warned = time.Now()
		p.log.Warn("cannot store that agents were seen, such as this one; the broker tries again at their next calls", "agent", agent, "error", err)
	}
}

// store merges what is known here with what other brokers know, who may have
// heard more. If one of them wrote just that lately, that will do: age is how long
// ago.
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
			// What cannot be read is written over.
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

// hear asks the server for its time, if that is due.
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

// with is what is stored of an agent with what is known here. When it was seen
// is when it is stored.
func (a Agent) with(known Agent) Agent {
	before := append([]string{a.Session}, a.Earlier...)
	a = overlay(a, known)
	a.Earlier = earlier(a.Session, append(slices.Clone(known.Earlier), before...))
	a.Agent, a.LastSeen = known.Agent, time.Time{}
	return a
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
