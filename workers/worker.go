package workers

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/semaphore"

	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// Options configure a [Worker].
type Options struct {
	// Name is the worker's id, unique in the fabric.
	Name string
	// Pools are the pools that the worker serves.
	Pools []string
	// Capacity is the number of batches that run at once; 0 means 64.
	Capacity int
	// Runners make the handlers, by kind. A hook of a kind without a runner fails to load.
	Runners map[schema.Kind]Runner
	// Inline are the kinds whose handlers always return at once. They run without a
	// goroutine and a timer of their own.
	Inline []schema.Kind
	// Dirs are the folders in which the worker looks up programs and modules before
	// python_path; empty means the folder of the configuration file.
	Dirs []string
	// Linger is how long the worker holds a replaced version for the calls that began with
	// it; 0 means two minutes, a negative value means not at all.
	Linger time.Duration
	// Parts is the store of conversations, for hooks that need them; nil means that [Run]
	// opens the fabric's own store at the first such hook.
	Parts Parts
	// Pace is called when a batch arrives and when a batch ends, with the number of batches;
	// nil means no calls.
	Pace Pace
	// Freed is called when a slot becomes free; nil means no call.
	Freed func()
	// Tracer starts spans; nil switches tracing off. Handlers still find their position in
	// a trace with [trace.From] in their context.
	Tracer *trace.Tracer
	// Logger is the log; nil means [slog.Default].
	Logger *slog.Logger
}

// A Pace learns how many batches a worker has.
type Pace interface {
	Begun(active int64)
	Ended(left int64)
}

// A Worker runs batches. It is safe for concurrent use.
type Worker struct {
	opt   Options
	slots chan struct{}

	versions  atomic.Pointer[map[uint64]*version]
	loading   sync.Mutex  // one configuration is loaded at a time
	holding   sync.Mutex  // one goroutine at a time changes the held versions
	kept      []uint64    // versions to keep; guarded by holding
	fabric    string      // the fabric of these versions, once known; guarded by holding
	dropTimer *time.Timer // when a lingering version is dropped
	active    atomic.Uint64
	loads     sync.WaitGroup // candidates that load in the background

	draining atomic.Bool
	moving   atomic.Bool  // see Leave
	leaving  atomic.Value // func(*nats.Conn): the move of a connected worker

	parts     partStore
	histories *semaphore.Weighted // acquired by the bytes of conversations

	mu        sync.Mutex           // guards the fields below
	batches   map[string]*progress // in progress, by batch id
	update    uint64               // counts the updates
	candidate *schema.Candidate    // the candidate in heartbeats
}

// progress is a batch in progress with its outcomes so far.
type progress struct {
	pool     string
	outcomes []schema.Outcome // guarded by Worker.mu
}

// New returns a Worker. It runs no batch before [Worker.Load].
func New(opt Options) *Worker {
	opt.Capacity = cmp.Or(opt.Capacity, 64)
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
	w.parts.setSource(opt.Parts)
	w.versions.Store(&map[uint64]*version{})
	w.dropTimer = time.AfterFunc(defaultLinger, w.trim)
	w.dropTimer.Stop()
	return w
}

// Try runs b in the caller's goroutine if a slot is free, and reports whether it did.
func (w *Worker) Try(ctx context.Context, b *schema.Batch) (schema.BatchReply, bool) {
	if !w.acquire() {
		return schema.BatchReply{}, false
	}
	return w.run(ctx, b, nil), true
}

// Run runs b. If it cannot, the reply's status says why: busy, stale or draining.
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

// Close ends the runners. Call [Service.Drain] first.
func (w *Worker) Close() error {
	w.begin(&state.Update{}) // so that an interrupted load is not reported
	w.dropTimer.Stop()
	var first error
	for _, r := range w.opt.Runners {
		if err := r.Close(); err != nil && first == nil {
			first = err
		}
	}
	w.loads.Wait()
	return first
}

// Name returns the worker's id.
func (w *Worker) Name() string { return w.opt.Name }

// Beat returns the worker's heartbeat for one of its pools.
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

// maxBeatOutcomes limits the finished outcomes in a heartbeat. Hooks whose outcomes do
// not fit run again if the worker is lost.
const maxBeatOutcomes = 256 << 10

// maxBeatErrors limits the load errors in a heartbeat, for the active version and for the
// candidate, because a worker whose heartbeats are too large to send would count as dead.
const maxBeatErrors = 64 << 10

func fittingErrors(all map[string]string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	return schema.FittingErrors(all, maxBeatErrors)
}

// fitting returns the longest prefix of outcomes that fits into room.
func fitting(outcomes []schema.Outcome, room *int) []schema.Outcome {
	for i := range outcomes {
		if *room -= outcomes[i].Result.Size() + len(outcomes[i].Error) + 64; *room < 0 {
			return slices.Clone(outcomes[:i])
		}
	}
	return slices.Clone(outcomes)
}

// A Handler runs one hook for one event. Its context ends at the hook's deadline; the
// worker ignores a later result. A Handler must be safe for concurrent use, and must not
// change the event.
//
// If Handle returns an error, the hook's failure policy decides. An [*UnloadedError] counts
// as an error of [Runner.Load]. To deny, return a [schema.Result], not an error.
type Handler interface {
	Handle(ctx context.Context, e *schema.Event) (schema.Result, error)
}

// An UnloadedError says why a handler that was loaded before can no longer run. The fabric
// denies the calls of its hook, as for a handler that failed to load.
type UnloadedError struct{ Err error }

func (e *UnloadedError) Error() string { return e.Err.Error() }
func (e *UnloadedError) Unwrap() error { return e.Err }

// A HandlerFunc is a function that implements [Handler].
type HandlerFunc func(ctx context.Context, e *schema.Event) (schema.Result, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, e *schema.Event) (schema.Result, error) {
	return f(ctx, e)
}

// A Runner makes the handlers of one kind, such as command or http.
type Runner interface {
	// Load prepares the handler of h. Its error is one sentence that says what to change;
	// the fabric denies the calls of a hook that fails to load. The worker calls Load once
	// per hook and config version. It closes a handler that is an [io.Closer] when no
	// version that it holds uses the handler and the last call has returned.
	Load(h schema.Hook, at Site) (Handler, error)
	// Close ends everything that the runner started, and waits for it.
	Close() error
}

// A Site has the settings of the configuration and the worker that apply to all hooks.
type Site struct {
	// Dirs are the folders in which the worker looks up relative programs and modules, in order.
	Dirs []string
	// Python has the settings of the processes that run Python functions.
	Python schema.PythonHosts
}

// A Factory makes the handler of a builtin hook from its configuration.
type Factory func(h schema.Hook) (Handler, error)

// Input is an event in the form that hooks in other processes read. The members of
// MassGen's HookEvent are always present, so that a script can read them without a check.
// If the event has no value for one, it is an empty string, an empty tool_input, or null
// for timestamp and tool_output.
type Input struct {
	SessionID      string         `json:"session_id"`
	OrchestratorID string         `json:"orchestrator_id"`
	Timestamp      jsontext.Value `json:"timestamp"`
	ToolName       string         `json:"tool_name"`
	ToolInput      jsontext.Value `json:"tool_input"`
	ToolOutput     jsontext.Value `json:"tool_output"`
	*schema.Event
}

// NewInput returns e as the Input of a hook.
func NewInput(e *schema.Event) (Input, error) {
	in := Input{
		SessionID: e.SessionID, OrchestratorID: e.OrchestratorID, ToolName: e.ToolName, Event: e,
		ToolInput: e.ToolInput, ToolOutput: e.ToolOutput, Timestamp: jsontext.Value("null"),
	}
	if len(in.ToolInput) == 0 {
		in.ToolInput = jsontext.Value("{}")
	}
	if len(in.ToolOutput) == 0 {
		in.ToolOutput = jsontext.Value("null")
	}
	if e.Timestamp.IsZero() {
		return in, nil
	}
	at, err := schema.Marshal(e.Timestamp)
	in.Timestamp = at
	return in, err
}
