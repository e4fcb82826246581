package dispatch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// These errors are why a call to a worker ended without an answer.
var (
	// ErrGone means that the worker is dead.
	ErrGone = errors.New("the worker is gone")
	// ErrSilent means that the worker's heartbeats stopped, or stopped naming the batch.
	ErrSilent = errors.New("the worker stopped reporting progress")
	// ErrNoWorker means that no worker serves the pool.
	ErrNoWorker = errors.New("no worker serves the pool")

	// errAbsent means that the worker is alive but does not have the batch.
	errAbsent = fmt.Errorf("%w about the batch", ErrSilent)

	// errUnsent means that the worker left after it was chosen and before it was asked.
	errUnsent = errors.New("the worker left the pool before it received the batch")

	errQueueFull = errors.New("the pool's queue is full")

	// errQueueLong means that the hook would not run in time.
	errQueueLong = errors.New("the pool's queue is too long for the hook to run before its deadline")
)

// silentAfter is the age of the last heartbeat from which a worker counts as silent,
// goneAfter the age at which it is removed.
const (
	silentAfter = schema.Missed * schema.BeatEvery
	goneAfter   = 4 * silentAfter
)

// Members tracks the workers of every pool by their heartbeats, and picks the least
// loaded one. mu guards the fields after it. While it is held, Members calls only
// functions that end calls, which do not call back.
type Members struct {
	mu       sync.Mutex
	pools    map[string]*pool
	sent     map[string]*sentBatch // by batch id
	expected time.Time             // until when workers may still be reconnecting
	lastTick time.Time
	queue    int    // how many calls may wait per pool
	tickets  uint64 // the last ticket

	// freed counts how often a slot of the local worker became free.
	freed atomic.Uint64
}

// pool has the workers of one pool and the calls that wait for one.
type pool struct {
	members  []*member
	waiting  []*queueEntry // by ticket
	done     int64         // how many batches workers finished
	overload Rush
}

// countFreed counts a freed slot, and feeds the overload detector if calls wait.
func (p *pool) countFreed() {
	p.done++
	if n := len(p.waiting); n > 0 {
		p.overload.Look(time.Now(), p.done, n)
	}
}

// member is one worker as this process sees it.
type member struct {
	pool, id string
	beat     time.Time
	capacity int
	draining bool
	// moving means that it changes to another server; no batch is sent to it.
	moving   bool
	versions []uint64
	failed   map[string]string // errors of handlers it could not load, by hook
	// candidate is its state of the version that may become active.
	candidate *schema.Candidate
	// mine counts the batches that this process sent to it, others those of other
	// processes.
	mine, others int
	// asleep means no heartbeat for silentAfter. It gets no batch until the next one.
	asleep bool
	// unfit means that it refused a batch. It gets no batch until its next heartbeat.
	unfit bool
	// lacks is a config version that it did not have when asked. It is not asked for that
	// version until its next heartbeat. 0: none.
	lacks uint64
}

// NewMembers makes an empty table. At most queue calls wait per pool; further calls are
// busy at once.
func NewMembers(queue int) *Members {
	return &Members{pools: make(map[string]*pool), sent: make(map[string]*sentBatch), queue: queue}
}

// Expect makes calls wait for workers that may still be reconnecting after a start. For
// silentAfter a call waits for the first worker of its pool instead of failing with
// ErrNoWorker.
func (m *Members) Expect() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expected = time.Now().Add(silentAfter)
}

// expecting reports whether workers may still be reconnecting.
func (m *Members) expecting() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Before(m.expected)
}

// Beat records a worker's heartbeat.
func (m *Members) Beat(b *schema.Beat) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pool(b.Pool)
	w := p.find(b.Worker)
	if w == nil {
		w = &member{pool: b.Pool, id: b.Worker}
		p.members = append(p.members, w)
	}
	w.beat, w.asleep, w.unfit, w.lacks = time.Now(), false, false, 0
	w.capacity, w.draining, w.versions, w.failed = b.Capacity, b.Draining, b.Versions, b.LoadErrors
	w.candidate, w.moving = b.Candidate, b.Moving
	w.others = max(0, b.InFlight-w.mine)
	m.progress(b)
	p.serve()
}

// Gone records that a worker is dead in the given pools; without one, in all. Its
// calls there end now. A worker that moves to another server is not dead: it is removed
// when it stays silent.
//
// Workers of different pools may have one name, and are not trusted with each other's
// batches. A caller that learned of the death through one pool's credentials or subjects
// must name that pool.
func (m *Members) Gone(worker string, pools ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	among := func(pool string) bool { return len(pools) == 0 || slices.Contains(pools, pool) }
	if m.moves(worker, among) {
		return
	}
	for name, p := range m.pools {
		if among(name) {
			p.members = slices.DeleteFunc(p.members, func(w *member) bool { return w.id == worker })
			p.release()
		}
	}
	for _, f := range m.sent {
		if f.worker == worker && among(f.pool) {
			f.lose(ErrGone)
		}
	}
}

// moves reports whether a worker of one of these pools moves to another server.
func (m *Members) moves(worker string, among func(pool string) bool) bool {
	for name, p := range m.pools {
		if w := p.find(worker); w != nil && w.moving && among(name) {
			return true
		}
	}
	return false
}

// A choice is the destination of a batch. The zero choice is the pool's first contact.
type choice struct {
	member *member
	worker string
	local  bool // the worker in this process
}

// returnSlot returns a worker's slot, with the status of its reply. A worker that refused
// gets no batch until its next heartbeat.
func (m *Members) returnSlot(w *member, version uint64, status schema.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.mine--
	switch status {
	case schema.StatusOK, schema.StatusMismatch, schema.StatusMalformed: // a malformed event is not the worker's fault
	case schema.StatusStale:
		w.lacks = version
	default:
		w.unfit = true
	}
	p := m.pool(w.pool)
	p.countFreed()
	p.serve()
}

// hasOther reports whether the pool has a live worker that is not excluded.
func (m *Members) hasOther(poolName string, excluded []string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.pool(poolName).members {
		if !w.asleep && !w.draining && !slices.Contains(excluded, w.id) {
			return true
		}
	}
	return false
}

// Pools lists every known pool and its workers, for people.
func (m *Members) Pools() []schema.PoolStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []schema.PoolStatus
	for _, name := range slices.Sorted(maps.Keys(m.pools)) {
		status := schema.PoolStatus{Pool: name, Workers: []schema.WorkerStatus{}}
		for _, w := range m.pools[name].members {
			status.Workers = append(status.Workers, schema.WorkerStatus{
				Worker: w.id, InFlight: w.mine + w.others, Capacity: w.capacity,
				Draining: w.draining, Silent: w.asleep, Versions: w.versions, Candidate: w.candidate,
			})
		}
		slices.SortFunc(status.Workers, func(a, b schema.WorkerStatus) int { return cmp.Compare(a.Worker, b.Worker) })
		all = append(all, status)
	}
	return all
}

// LoadErrors returns the handlers that some worker could not load, by hook.
func (m *Members) LoadErrors() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string]string)
	for _, p := range m.pools {
		for _, w := range p.members {
			maps.Copy(all, w.failed)
		}
	}
	return all
}

func (m *Members) pool(name string) *pool {
	p := m.pools[name]
	if p == nil {
		p = &pool{}
		m.pools[name] = p
	}
	return p
}

func (p *pool) find(id string) *member {
	for _, w := range p.members {
		if w.id == id {
			return w
		}
	}
	return nil
}

// best returns the worker with the largest share of free slots, preferring workers that
// have loaded t's version. alive reports whether any worker is alive.
func (p *pool) best(t *queueEntry) (best *member, alive bool) {
	var bestFree float64
	var bestHolds bool
	start := 0
	if len(p.members) > 1 {
		start = rand.IntN(len(p.members))
	}
	for i := range p.members {
		w := p.members[(start+i)%len(p.members)]
		if w.asleep || w.draining || slices.Contains(t.excluded, w.id) {
			continue
		}
		alive = true
		if !w.hasCapacity() || t.version != 0 && w.lacks == t.version || t.shadow && 2*w.free() <= w.capacity {
			continue
		}
		holds, free := slices.Contains(w.versions, t.version), float64(w.free())/float64(w.capacity)
		if best == nil || holds && !bestHolds || holds == bestHolds && free > bestFree {
			best, bestFree, bestHolds = w, free, holds
		}
	}
	return best, alive
}

// hasSleepers reports whether a silent worker that is not excluded may come back.
func (p *pool) hasSleepers(excluded []string) bool {
	return slices.ContainsFunc(p.members, func(w *member) bool { return w.asleep && !slices.Contains(excluded, w.id) })
}

// hasCapacity reports whether the worker would take a batch now.
func (w *member) hasCapacity() bool {
	return !w.asleep && !w.draining && !w.moving && !w.unfit && w.free() > 0
}

func (w *member) free() int { return w.capacity - w.mine - w.others }

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
