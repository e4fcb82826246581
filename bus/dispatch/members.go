package dispatch

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// Why a call to a worker ended without an answer.
var (
	// ErrGone: the worker is known to be dead.
	ErrGone = errors.New("the worker is gone")
	// ErrSilent: the worker, or news of the batch, failed to come.
	ErrSilent = errors.New("the worker went silent")
	// ErrNoWorker: nobody serves the pool.
	ErrNoWorker = errors.New("no worker serves the pool")

	// errAbsent: the worker lives, but does not have the batch (any more).
	errAbsent = fmt.Errorf("%w about the batch", ErrSilent)

	errQueueFull = errors.New("the pool's queue is full")
)

// silentAfter is when a worker that has not beaten counts as silent, goneAfter
// when it is forgotten.
const (
	silentAfter = schema.Missed * schema.BeatEvery
	goneAfter   = 4 * silentAfter
)

// Members knows the workers of every pool by their beats, and picks the least
// loaded one. Its lock guards everything below it; nothing is called out of it
// but the cancel functions of calls, which do not call back.
type Members struct {
	mu       sync.Mutex
	pools    map[string]*pool
	flights  map[string]*flight // by batch id
	lastTick time.Time
	queue    int // how many calls may wait per pool
}

// pool is the workers of one pool and the calls that wait for one.
type pool struct {
	members []*member
	waiting []chan struct{} // woken in order, one per free slot
}

// member is one worker as this process sees it.
type member struct {
	pool, id string
	beat     time.Time
	capacity int
	draining bool
	versions []uint64
	failed   map[string]string // handlers it could not load, by hook
	// mine are the batches that this process has there, others what the worker
	// said it has besides.
	mine, others int
	// asleep: no beat for silentAfter; it gets nothing until it beats again.
	asleep bool
	// unfit: it refused a batch; it is not asked again until it beats again.
	unfit bool
}

// flight is a batch that some worker has in hand.
type flight struct {
	batch      string
	pool       string
	worker     string // empty until known: first contact
	sent       time.Time
	idempotent bool
	spare      bool // the local worker can run it, too
	absent     int  // beats in a row that did not name it
	outcomes   []schema.Outcome
	cancel     func(error)
}

// NewMembers makes an empty table. At most queue calls wait per pool; above
// that a call is busy at once.
func NewMembers(queue int) *Members {
	return &Members{pools: make(map[string]*pool), flights: make(map[string]*flight), queue: queue}
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
	w.beat, w.asleep, w.unfit = time.Now(), false, false
	w.capacity, w.draining, w.versions, w.failed = b.Capacity, b.Draining, b.Versions, b.LoadErrors
	w.others = max(0, b.InFlight-w.mine)
	m.progress(b)
	p.wake(w.free())
}

// progress compares a beat with the flights that its worker should have in hand.
func (m *Members) progress(b *schema.Beat) {
	for i := range b.Batches {
		if f := m.flights[b.Batches[i].Batch]; f != nil {
			f.worker, f.absent, f.outcomes = b.Worker, -1, b.Batches[i].Outcomes
		}
	}
	for _, f := range m.flights {
		if f.worker != b.Worker || f.pool != b.Pool {
			continue
		}
		if f.absent++; f.absent >= 2 && f.idempotent {
			f.cancel(errAbsent)
		}
	}
}

// Gone records that a worker is dead: its calls end now.
func (m *Members) Gone(worker string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.pools {
		p.members = slices.DeleteFunc(p.members, func(w *member) bool { return w.id == worker })
		p.wake(len(p.waiting))
	}
	for _, f := range m.flights {
		if f.worker == worker {
			f.cancel(ErrGone)
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
	for _, p := range m.pools {
		m.tickPool(p, now, late)
	}
	for _, f := range m.flights {
		f.sent = f.sent.Add(late)
		if f.worker == "" && f.idempotent && now.Sub(f.sent) > silentAfter+schema.BeatEvery {
			f.cancel(ErrSilent)
		}
	}
}

func (m *Members) tickPool(p *pool, now time.Time, late time.Duration) {
	p.members = slices.DeleteFunc(p.members, func(w *member) bool {
		w.beat = w.beat.Add(late)
		silence := now.Sub(w.beat)
		if w.asleep = silence > silentAfter; w.asleep {
			m.silent(p, w)
		}
		return silence > goneAfter
	})
	if len(p.members) == 0 {
		p.wake(len(p.waiting))
	}
}

// silent ends the idempotent calls of a worker that stopped beating, if another
// one can run them. The others go on listening: they must not run twice.
func (m *Members) silent(p *pool, w *member) {
	_, other := p.best(0, []string{w.id})
	for _, f := range m.flights {
		if f.worker == w.id && f.pool == w.pool && f.idempotent && (other || f.spare) {
			f.cancel(ErrSilent)
		}
	}
}

// A choice is where a batch goes. The zero worker is the pool's first contact.
type choice struct {
	member *member
	worker string
}

// take finds the least loaded worker that may get a batch of the version. It
// returns a channel to wait on when all are full, ErrNoWorker when the pool has
// none (unless a local worker serves it too), or errQueueFull.
func (m *Members) take(poolName string, version uint64, not []string, local bool) (choice, chan struct{}, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pool(poolName)
	best, alive := p.best(version, not)
	if best != nil {
		best.mine++
		return choice{best, best.id}, nil, nil
	}
	switch {
	case alive || local || p.hasSleepers(not):
		// Somebody may become free, or wake up.
	case len(not) > 0:
		return choice{}, nil, ErrNoWorker
	default:
		return choice{}, nil, nil
	}
	if len(p.waiting) >= m.queue {
		return choice{}, nil, errQueueFull
	}
	ch := make(chan struct{}, 1)
	p.waiting = append(p.waiting, ch)
	return choice{}, ch, nil
}

// await is a turn in the pool's queue, without asking for a worker first.
func (m *Members) await(poolName string) chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ch := m.pool(poolName), make(chan struct{}, 1)
	p.waiting = append(p.waiting, ch)
	return ch
}

// leave takes a call that no longer waits out of its queue. If it was woken in
// the meantime, its turn goes to the next.
func (m *Members) leave(poolName string, ch chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.pool(poolName)
	if i := slices.Index(p.waiting, ch); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
		return
	}
	p.wake(1)
}

// give returns a worker's slot. A refused batch makes the worker unfit until
// its next beat.
func (m *Members) give(w *member, refused bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w.mine--
	if refused {
		w.unfit = true
	}
	m.pool(w.pool).wake(1)
}

// Freed tells that a slot of the local worker became free.
func (m *Members) Freed(poolName string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.pools[poolName]; p != nil {
		p.wake(1)
	}
}

// launch registers a batch that is about to be sent, so that news of its
// worker reaches its call through cancel.
func (m *Members) launch(f *flight) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f.sent = time.Now()
	m.flights[f.batch] = f
}

// land ends a flight and returns the outcomes that its worker's beats brought.
func (m *Members) land(f *flight) []schema.Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.flights, f.batch)
	return f.outcomes
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
				Draining: w.draining, Silent: w.asleep, Versions: w.versions,
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
// hold the version, else among all; and whether any worker is alive at all.
func (p *pool) best(version uint64, not []string) (best *member, alive bool) {
	var bestFree float64
	var bestHolds bool
	start := 0
	if len(p.members) > 1 {
		start = rand.IntN(len(p.members))
	}
	for i := range p.members {
		w := p.members[(start+i)%len(p.members)]
		if w.asleep || w.draining || slices.Contains(not, w.id) {
			continue
		}
		alive = true
		if w.unfit || w.free() <= 0 {
			continue
		}
		holds, free := slices.Contains(w.versions, version), float64(w.free())/float64(w.capacity)
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

func (p *pool) wake(n int) {
	for ; n > 0 && len(p.waiting) > 0; n-- {
		p.waiting[0] <- struct{}{}
		p.waiting = p.waiting[1:]
	}
}

func (w *member) free() int { return w.capacity - w.mine - w.others }
