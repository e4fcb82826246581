package dispatch

import (
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// flight is a batch that some worker has in hand.
type flight struct {
	wire       schema.Batch // as the worker gets it
	pool       string
	worker     string // empty until known: first contact
	idempotent bool
	spare      bool // the local worker can run it, too
	// stop ends the call, and lost is why; nil: nobody but the call itself did.
	stop func()
	lost error

	sent     time.Time
	heard    time.Time // when a beat last named it, or counted as one that did not
	absent   int       // beats in a row that did not name it
	outcomes []schema.Outcome
}

// launch registers a batch that is about to be sent, so that news of its
// worker ends its call. It reports whether the worker that
// was chosen for it is still there.
func (m *Members) launch(f *flight, to *member) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if to != nil && m.pool(f.pool).find(to.id) != to {
		return false
	}
	f.sent = time.Now()
	f.heard = f.sent
	m.flights[f.wire.Batch] = f
	return true
}

// lose ends a flight's call because of its worker. The lock is held.
func (f *flight) lose(why error) {
	if f.lost == nil {
		f.lost = why
	}
	f.stop()
}

// land ends a flight and returns the outcomes that its worker's beats brought,
// and the worker, if it is known by now.
func (m *Members) land(f *flight) (worker string, outcomes []schema.Outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.flights, f.wire.Batch)
	return f.worker, f.outcomes
}

// progress compares a beat with the flights that its worker should have in
// hand. A beat that comes sooner than half a beat after the last one does not
// count against a flight: it may have been sent before the batch arrived, or
// lain here while this process was stopped.
func (m *Members) progress(b *schema.Beat) {
	now := time.Now()
	for i := range b.Batches {
		f := m.flights[b.Batches[i].Batch]
		if f == nil || f.pool != b.Pool || f.worker != "" && f.worker != b.Worker {
			continue
		}
		f.worker, f.absent, f.heard = b.Worker, 0, now
		if len(b.Batches[i].Outcomes) > len(f.outcomes) {
			f.outcomes = b.Batches[i].Outcomes
		}
	}
	for _, f := range m.flights {
		if f.worker != b.Worker || f.pool != b.Pool || now.Sub(f.heard) < schema.BeatEvery/2 {
			continue
		}
		f.heard = now
		if f.absent++; f.absent >= 2 && f.idempotent {
			f.lose(errAbsent)
		}
	}
}

// Tick looks for silence. Call it several times per beat interval. When the
// ticks themselves come late this process was stopped or starved, and the
// silence it thinks it heard was its own.
func (m *Members) Tick(every time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	late := now.Sub(m.lastTick) - every
	if m.lastTick.IsZero() || late < every {
		late = 0
	}
	m.lastTick = now
	met := !m.expected.IsZero() && now.After(m.expected)
	if met {
		m.expected = time.Time{}
	}
	for _, p := range m.pools {
		p.tick(now, late)
		if met {
			p.release()
		}
	}
	for _, f := range m.flights {
		f.sent = f.sent.Add(late)
		if f.idempotent && m.silent(f, now) {
			f.lose(ErrSilent)
		}
	}
}

// tick forgets workers that are silent for long.
func (p *pool) tick(now time.Time, late time.Duration) {
	before := len(p.members)
	p.members = slices.DeleteFunc(p.members, func(w *member) bool {
		w.beat = w.beat.Add(late)
		silence := now.Sub(w.beat)
		w.asleep = silence > silentAfter
		return silence > goneAfter
	})
	if len(p.members) < before {
		p.release()
	}
}

// silent reports whether nothing is heard of a batch's worker while another one
// can run it. Batches that must not run twice go on listening.
func (m *Members) silent(f *flight, now time.Time) bool {
	if f.worker == "" {
		return now.Sub(f.sent) > silentAfter+schema.BeatEvery
	}
	p := m.pool(f.pool)
	if w := p.find(f.worker); w != nil && !w.asleep {
		return false
	}
	_, other := p.best(&turn{not: []string{f.worker}})
	return other || f.spare
}
