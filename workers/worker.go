package workers

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// Options are what a Worker needs.
type Options struct {
	// Name is the worker's id, unique in the fabric.
	Name string
	// Pools are the pools it serves.
	Pools []string
	// Capacity is how many batches run at once; 0: 64.
	Capacity int
	// Runners run the handlers, by kind. A hook of a kind that is missing here
	// can not be loaded.
	Runners map[schema.Kind]Runner
	// Inline are the kinds whose handlers always return at once: they run
	// without a goroutine and a timer of their own.
	Inline []schema.Kind
	// Dirs are where programs and modules are looked up before python_path;
	// empty: the folder of the configuration's file.
	Dirs []string
	// Linger is how long a version that was replaced, and is no longer kept, is
	// held for the calls that began by it; 0: two minutes. Negative: not at all.
	Linger time.Duration
	// Parts is where conversations lie, for hooks that need them; nil: [Run] reaches
	// the fabric's own store when one is needed first.
	Parts Parts
	// Pace hears how many batches are there with each that comes, and how many are left
	// with each that was answered; nil: nobody does.
	Pace Pace
	// Freed is told that a slot became free; nil: nobody needs to know.
	Freed func()
	// Tracer begins spans; nil: nobody traces here. Handlers find their place in a
	// trace in their context by [trace.From] all the same.
	Tracer *trace.Tracer
	// Logger; nil: slog's default.
	Logger *slog.Logger
}

// A Pace has something follow how much a worker has to do.
type Pace interface {
	Begun(active int64)
	Ended(left int64)
}

// A Worker runs batches. It is safe for many goroutines.
type Worker struct {
	opt   Options
	slots chan struct{}

	versions atomic.Pointer[map[uint64]*version]
	loading  sync.Mutex  // one configuration is loaded at a time
	holding  sync.Mutex  // one goroutine at a time changes which versions are held
	kept     []uint64    // the versions that are held on to; guarded by holding
	fabric   string      // whose versions these are, once one was followed; guarded by holding
	later    *time.Timer // when a version that lingers is let go of
	active   atomic.Uint64
	loads    sync.WaitGroup // versions that are loaded beside the active one

	draining atomic.Bool
	moving   atomic.Bool  // see Leave
	leaving  atomic.Value // of func(*nats.Conn): what Leave does once the worker is on the bus

	parts     partStore
	histories *semaphore.Weighted // held by the bytes of conversations

	mu        sync.Mutex           // guards what follows
	batches   map[string]*progress // in hand, by batch id
	turn      uint64               // counts the updates that were taken
	candidate *schema.Candidate    // what is said of the version that may become active
}

// progress is a batch in hand and the outcomes that are already there.
type progress struct {
	pool     string
	outcomes []schema.Outcome // guarded by Worker.mu
}

// New makes a Worker. It runs nothing before Load.
func New(opt Options) *Worker {
	if opt.Capacity == 0 {
		opt.Capacity = 64
	}
	if opt.Linger == 0 {
		opt.Linger = defaultLinger
	}
	if opt.Logger == nil {
		opt.Logger = slog.Default()
	}
	if opt.Freed == nil {
		opt.Freed = func() {}
	}
	opt.Pools = slices.Compact(slices.Sorted(slices.Values(opt.Pools)))
	w := &Worker{opt: opt, slots: make(chan struct{}, opt.Capacity), batches: make(map[string]*progress), histories: semaphore.NewWeighted(maxHistories)}
	w.parts.reach(opt.Parts)
	w.versions.Store(&map[uint64]*version{})
	w.later = time.AfterFunc(defaultLinger, w.trim)
	w.later.Stop()
	return w
}

// Try runs b as a function call if a slot is free, and reports whether it did.
func (w *Worker) Try(ctx context.Context, b *schema.Batch) (schema.BatchReply, bool) {
	if !w.acquire() {
		return schema.BatchReply{}, false
	}
	return w.run(ctx, b, nil), true
}

// Run runs b, or says why not: busy, stale or draining.
func (w *Worker) Run(ctx context.Context, b *schema.Batch) schema.BatchReply {
	if w.draining.Load() {
		return schema.BatchReply{Worker: w.opt.Name, Status: schema.StatusDraining}
	}
	if !w.acquire() {
		return schema.BatchReply{Worker: w.opt.Name, Status: schema.StatusBusy}
	}
	return w.run(ctx, b, nil)
}

// acquire takes a slot if one is free.
func (w *Worker) acquire() bool {
	select {
	case w.slots <- struct{}{}:
		return true
	default:
		return false
	}
}

func (w *Worker) release() {
	<-w.slots
	w.opt.Freed()
}

// Close ends the runners. Drain its Service first.
func (w *Worker) Close() error {
	w.begin(&state.Update{}) // that a load is cut short is nothing to be told of its version
	w.later.Stop()
	var first error
	for _, r := range w.opt.Runners {
		if err := r.Close(); err != nil && first == nil {
			first = err
		}
	}
	w.loads.Wait()
	return first
}

// Name is the worker's id.
func (w *Worker) Name() string { return w.opt.Name }

// Beat is what the worker says of itself to one of its pools.
func (w *Worker) Beat(pool string) *schema.Beat {
	b := &schema.Beat{
		Pool: pool, Worker: w.opt.Name,
		InFlight: len(w.slots), Capacity: w.opt.Capacity, Draining: w.draining.Load(), Moving: w.moving.Load(),
	}
	versions := *w.versions.Load()
	b.Versions = slices.Sorted(maps.Keys(versions))
	if v := versions[w.Version()]; v != nil {
		b.LoadErrors = fittingErrors(v.loadErrors())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	b.Candidate = w.candidate
	room := maxBeatOutcomes
	for id, p := range w.batches {
		if p.pool == pool {
			b.Batches = append(b.Batches, schema.BatchProgress{Batch: id, Outcomes: fitting(p.outcomes, &room)})
		}
	}
	return b
}

// maxBeatOutcomes bounds what a beat carries of finished outcomes: what does
// not fit is run again if its worker is lost.
const maxBeatOutcomes = 256 << 10

// maxBeatErrors bounds what a beat carries of load errors, those of the active
// version and those of the candidate each: a worker whose beats fit into no
// message would count as dead.
const maxBeatErrors = 64 << 10

func fittingErrors(all map[string]string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	return schema.FittingErrors(all, maxBeatErrors)
}

// fitting is the longest prefix of outcomes that fits into room.
func fitting(outcomes []schema.Outcome, room *int) []schema.Outcome {
	for i := range outcomes {
		if *room -= outcomes[i].Result.Size() + len(outcomes[i].Error) + 64; *room < 0 {
			return slices.Clone(outcomes[:i])
		}
	}
	return slices.Clone(outcomes)
}
