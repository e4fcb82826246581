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

// Why a call to a worker ended without an answer.
var (
	// ErrGone: the worker is known to be dead.
	ErrGone = errors.New("the worker is gone")
	// ErrSilent: the worker, or news of the batch, failed to come.
	ErrSilent = errors.New("the worker stopped reporting progress")
	// ErrNoWorker: nobody serves the pool.
	ErrNoWorker = errors.New("no worker serves the pool")

	// errAbsent: the worker lives, but does not have the batch (any more).
	errAbsent = fmt.Errorf("%w about the batch", ErrSilent)

	// errUnsent: the worker left between being chosen and being asked.
	errUnsent = errors.New("the worker left the pool before it received the batch")

	errQueueFull = errors.New("the pool's queue is full")

	// errQueueLong: to wait would be in vain.
	errQueueLong = errors.New("the pool's queue is too long for the hook to run before its deadline")
)

// silentAfter is when a worker that has not beaten counts as silent, goneAfter
// when it is forgotten.
const (
	silentAfter = schema.Missed * schema.BeatEvery
	goneAfter   = 4 * silentAfter
)

// Members knows the workers of every pool by their beats, and picks the least
// loaded one. Its lock guards what follows it; nothing is called out of it
// but the functions that end calls, which do not call back.
type Members struct {
	mu       sync.Mutex
	pools    map[string]*pool
	flights  map[string]*flight // by batch id
	expected time.Time          // until when workers may be on their way
	lastTick time.Time
	queue    int    // how many calls may wait per pool
	tickets  uint64 // the last one given out

	// freed counts the slots of the local worker that became free.
	freed atomic.Uint64
}

// pool is the workers of one pool and the calls that wait for one.
type pool struct {
	members []*member
	waiting []*turn // by ticket
	done    int64   // how many batches came back
	rush    Rush
}

// look notes what became free, if somebody waits for that.
func (p *pool) look() {
	p.done++
	if n := len(p.waiting); n > 0 {
		p.rush.Look(time.Now(), p.done, n)
	}
}

// member is one worker as this process sees it.
type member struct {
	pool, id string
	beat     time.Time
	capacity int
	draining bool
	// moving: it goes to another server, and nothing is sent to it meanwhile.
	moving   bool
	versions []uint64
	failed   map[string]string // handlers it could not load, by hook
	// candidate is what it says of the version that may become active.
	candidate *schema.Candidate
	// mine are the batches that this process has there, others what the worker
	// said it has besides.
	mine, others int
	// asleep: no beat for silentAfter; it gets nothing until it beats again.
	asleep bool
	// unfit: it refused a batch; it is not asked again until it beats again.
	unfit bool
	// lacks is a config version that it did not have when it was asked; it is
	// not asked for it again until it beats again. 0: none is known.
	lacks uint64
}

// NewMembers makes an empty table. At most queue calls wait per pool; above
// that a call is busy at once.
func NewMembers(queue int) *Members {
	return &Members{pools: make(map[string]*pool), flights: make(map[string]*flight), queue: queue}
}

// Expect says that workers may be on their way: after a start they come back as
// their connections do, and until then a call waits for the first one of its
// pool instead of finding that nobody serves it. It lasts as long as a worker
// may be silent.
func (m *Members) Expect() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.expected = time.Now().Add(silentAfter)
}

// Beat records what a worker says of itself.
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

// Gone records that a worker is dead in pools; none named: in all of them. Its calls
// there end now. One that said there that it moves is not dead: its silence will tell.
//
// Workers of different pools may go by one name, and are not trusted with each other's
// batches: whoever knows of a death by one pool's credentials, or by one pool's
// subjects, names the pool.
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
	for _, f := range m.flights {
		if f.worker == worker && among(f.pool) {
			f.lose(ErrGone)
		}
	}
}

// moves reports whether a worker said in one of these pools that it goes to another server.
func (m *Members) moves(worker string, among func(pool string) bool) bool {
	for name, p := range m.pools {
		if w := p.find(worker); w != nil && w.moving && among(name) {
			return true
		}
	}
	return false
}

// A choice is where a batch goes. The zero choice is the pool's first contact.
type choice struct {
	member *member
	worker string
	local  bool // the worker in this process
}

// give returns a worker's slot, with what the worker said to the batch. One
// that refused is left alone until its next beat.
func (m *Members) give(w *member, version uint64, said schema.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.mine--
	switch said {
	case schema.StatusOK, schema.StatusMismatch, schema.StatusMalformed: // it is not to blame for the event
	case schema.StatusStale:
		w.lacks = version
	default:
		w.unfit = true
	}
	p := m.pool(w.pool)
	p.look()
	p.serve()
}

// other reports whether the pool has a live worker besides those named.
func (m *Members) other(poolName string, not []string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.pool(poolName).members {
		if !w.asleep && !w.draining && !slices.Contains(not, w.id) {
			return true
		}
	}
	return false
}

// Pools lists what is known of every pool and its workers, for people.
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

// LoadErrors are the handlers that some worker could not load, by hook.
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

// best is the worker with the largest share of free slots among those that
// hold t's version, else among all; and whether any worker is alive at all.
func (p *pool) best(t *turn) (best *member, alive bool) {
	var bestFree float64
	var bestHolds bool
	start := 0
	if len(p.members) > 1 {
		start = rand.IntN(len(p.members))
	}
	for i := range p.members {
		w := p.members[(start+i)%len(p.members)]
		if w.asleep || w.draining || slices.Contains(t.not, w.id) {
			continue
		}
		alive = true
		if !w.takes() || t.version != 0 && w.lacks == t.version || t.aside && 2*w.free() <= w.capacity {
			continue
		}
		holds, free := slices.Contains(w.versions, t.version), float64(w.free())/float64(w.capacity)
		if best == nil || holds && !bestHolds || holds == bestHolds && free > bestFree {
			best, bestFree, bestHolds = w, free, holds
		}
	}
	return best, alive
}

// hasSleepers reports whether a silent worker besides those named may come back.
func (p *pool) hasSleepers(not []string) bool {
	return slices.ContainsFunc(p.members, func(w *member) bool { return w.asleep && !slices.Contains(not, w.id) })
}

// takes reports whether the worker would take a batch now.
func (w *member) takes() bool {
	return !w.asleep && !w.draining && !w.moving && !w.unfit && w.free() > 0
}

func (w *member) free() int { return w.capacity - w.mine - w.others }
