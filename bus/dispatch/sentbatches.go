package dispatch

import (
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// sentBatch is a batch that a worker has received and not answered.
type sentBatch struct {
	wire       schema.Batch // as the worker received it
	pool       string
	worker     string // empty until known, at first contact
	idempotent bool
	spare      bool // the local worker can run it, too
	// stop ends the call, and lost is the reason; nil: the worker is not lost.
	stop func()
	lost error

	sent     time.Time
	heard    time.Time // when a heartbeat last named it, or counted as absent
	absent   int       // consecutive heartbeats that did not name it
	outcomes []schema.Outcome
}

// track registers a batch before it is sent, so that the loss of its worker ends the
// call. It reports whether the chosen worker is still known.
func (m *Members) track(f *sentBatch, to *member) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if to != nil && m.pool(f.pool).find(to.id) != to {
		return false
	}
	f.sent = time.Now()
	f.heard = f.sent
	m.sent[f.wire.Batch] = f
	return true
}

// lose ends the call of a batch because its worker is lost. The caller holds the lock.
func (f *sentBatch) lose(why error) {
	if f.lost == nil {
		f.lost = why
	}
	f.stop()
}

// untrack removes a batch. It returns its worker, if known, and the outcomes from the
// worker's heartbeats.
func (m *Members) untrack(f *sentBatch) (worker string, outcomes []schema.Outcome) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sent, f.wire.Batch)
	return f.worker, f.outcomes
}

// progress compares a heartbeat with the batches that its worker should have. A heartbeat
// less than half an interval after the last one does not count as absent: it may have
// been sent before the batch arrived, or have waited here while this process was stopped.
func (m *Members) progress(b *schema.Beat) {
	now := time.Now()
	for i := range b.Batches {
		f := m.sent[b.Batches[i].Batch]
		if f == nil || f.pool != b.Pool || f.worker != "" && f.worker != b.Worker {
			continue
		}
		f.worker, f.absent, f.heard = b.Worker, 0, now
		if len(b.Batches[i].Outcomes) > len(f.outcomes) {
			f.outcomes = b.Batches[i].Outcomes
		}
	}
	for _, f := range m.sent {
		if f.worker != b.Worker || f.pool != b.Pool || now.Sub(f.heard) < schema.BeatEvery/2 {
			continue
		}
		f.heard = now
		if f.absent++; f.absent >= 2 && f.idempotent {
			f.lose(errAbsent)
		}
	}
}

// Tick detects silent workers. Call it several times per heartbeat interval. If ticks
// come late, this process was stopped or starved, so that time does not count as silence.
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
	for _, f := range m.sent {
		f.sent = f.sent.Add(late)
		if f.idempotent && m.silent(f, now) {
			f.lose(ErrSilent)
		}
	}
}

// tick removes workers that are silent for goneAfter.
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

// silent reports whether a batch's worker is silent while another worker can run the
// batch. Without another worker the batch goes on waiting.
func (m *Members) silent(f *sentBatch, now time.Time) bool {
	if f.worker == "" {
		return now.Sub(f.sent) > silentAfter+schema.BeatEvery
	}
	p := m.pool(f.pool)
	if w := p.find(f.worker); w != nil && !w.asleep {
		return false
	}
	_, other := p.best(&queueEntry{excluded: []string{f.worker}})
	return other || f.spare
}
