package workers

import (
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/hookfabric/hookfabric/schema"
)

// keptVersions is how many config versions [Worker.Load] keeps, so that calls pinned to
// an older one can still run.
const keptVersions = 3

// version is one configuration with its loaded handlers.
type version struct {
	config *schema.Config
	hooks  []loaded // by hook id; hooks of other pools and stages of the aggregator are empty
	// users counts the batches that use it, plus one while it is held. At zero its
	// handlers are closed, and it is not used again.
	users atomic.Int64
	// served means that it was active here, so that calls may use it. until is when it is
	// dropped, zero while it is kept. holding guards both.
	served bool
	until  time.Time
}

// loaded is one hook that is ready to run, or the error why it is not.
type loaded struct {
	hook    *schema.Hook
	handler Handler
	err     error
	inline  bool
	history bool          // it needs the conversation
	native  bool          // it needs the runtime's own payload
	action  bool          // it needs the facts of the call
	slots   chan struct{} // max_concurrent; nil: no limit
}

// Load activates cfg, and keeps the last three versions. It returns the load errors by hook
// name; the fabric denies the calls of these hooks.
func (w *Worker) Load(cfg schema.Config) map[string]string {
	errs := w.Prepare(cfg)
	held := slices.Sorted(maps.Keys(*w.versions.Load()))
	w.Activate(cfg.Version, held[max(0, len(held)-keptVersions):])
	return errs
}

// Prepare loads cfg beside the versions that the worker holds, unless it holds cfg already.
// It returns the load errors by hook name.
func (w *Worker) Prepare(cfg schema.Config) map[string]string { return w.prepare(cfg, w.holdVersion) }

// prepare is Prepare with a function that stores the loaded version.
func (w *Worker) prepare(cfg schema.Config, hold func(*version)) map[string]string {
	if v := w.findVersion(&cfg); v != nil {
		return v.loadErrors() // without waiting for another configuration that loads
	}
	w.loading.Lock()
	defer w.loading.Unlock()
	if v := w.findVersion(&cfg); v != nil {
		return v.loadErrors()
	}
	v := &version{config: &cfg, hooks: make([]loaded, len(cfg.Hooks))}
	v.users.Store(1)
	for i := range cfg.Hooks {
		if h := &cfg.Hooks[i]; !h.Stage() && slices.Contains(w.opt.Pools, h.Pool) {
			v.hooks[i] = w.loadHook(h, &cfg)
		}
	}
	hold(v)
	w.complain(v)
	return v.loadErrors()
}

// maxComplaints limits the log lines about one version.
const maxComplaints = 20

// complain logs load errors.
func (w *Worker) complain(v *version) {
	failed := 0
	for i := range v.hooks {
		l := &v.hooks[i]
		if l.err == nil {
			continue
		}
		if failed++; failed <= maxComplaints {
			w.opt.Logger.Error("handler cannot be loaded; the fabric denies its calls while this version is active",
				"hook", l.hook.Name, "version", v.config.Version, "error", l.err)
		}
	}
	if more := failed - maxComplaints; more > 0 {
		w.opt.Logger.Error("more handlers cannot be loaded", "version", v.config.Version, "more", more)
	}
}

// findVersion returns the held version of cfg; nil: it is not held.
func (w *Worker) findVersion(cfg *schema.Config) *version {
	if v := (*w.versions.Load())[cfg.Version]; v != nil && v.config.Fabric == cfg.Fabric {
		return v
	}
	return nil
}

// holdVersion adds v to the versions of its fabric.
func (w *Worker) holdVersion(v *version) {
	w.holding.Lock()
	defer w.holding.Unlock()
	w.addVersion(v)
}

// holdWanted is holdVersion for a candidate, if the last update still names it. By then the
// fabric may have changed, and numbers are another fabric's.
func (w *Worker) holdWanted(v *version) {
	w.holding.Lock()
	defer w.holding.Unlock()
	if v.config.Fabric == w.fabric && slices.Contains(w.kept, v.config.Version) {
		w.addVersion(v)
		return
	}
	w.leave(v)
}

// addVersion is holdVersion with the lock held.
func (w *Worker) addVersion(v *version) {
	next := map[uint64]*version{v.config.Version: v}
	for n, other := range *w.versions.Load() {
		if n != v.config.Version && other.config.Fabric == v.config.Fabric {
			next[n] = other
		}
	}
	w.replace(next)
}

// Activate sets the prepared version that the worker reports on, and the versions that it
// holds from now on.
func (w *Worker) Activate(active uint64, keep []uint64) {
	w.holding.Lock()
	defer w.holding.Unlock()
	w.kept = keep
	if v := (*w.versions.Load())[active]; v != nil {
		v.served = true
	}
	w.drop()
	w.active.Store(active)
}

// trim drops prepared versions that are not kept.
func (w *Worker) trim() {
	w.holding.Lock()
	defer w.holding.Unlock()
	w.drop()
}

// replace holds the versions in next and drops all others.
func (w *Worker) replace(next map[uint64]*version) {
	held := w.versions.Swap(&next)
	for n, v := range *held {
		if next[n] != v {
			w.leave(v)
		}
	}
}

// use finds a version and keeps its handlers open until leave.
func (w *Worker) use(b *schema.Batch) *version {
	v := (*w.versions.Load())[b.Version]
	if v == nil || b.Fabric != "" && b.Fabric != v.config.Fabric {
		return nil
	}
	for {
		n := v.users.Load()
		if n == 0 {
			return nil // it was dropped concurrently
		}
		if v.users.CompareAndSwap(n, n+1) {
			return v
		}
	}
}

// leave ends a use of v; the last one closes its handlers.
func (w *Worker) leave(v *version) {
	if v.users.Add(-1) > 0 {
		return
	}
	for i := range v.hooks {
		if c, ok := v.hooks[i].handler.(io.Closer); ok {
			if err := c.Close(); err != nil {
				w.opt.Logger.Warn("closing a handler failed", "hook", v.hooks[i].hook.Name, "error", err)
			}
		}
	}
}

func (w *Worker) loadHook(h *schema.Hook, cfg *schema.Config) loaded {
	l := loaded{hook: h, history: slices.Contains(h.Needs, schema.NeedHistory), native: slices.Contains(h.Needs, schema.NeedNative), action: slices.Contains(h.Needs, schema.NeedAction)}
	l.inline = slices.Contains(w.opt.Inline, h.Type) && !l.history // fetching a conversation takes time
	if h.MaxConcurrent > 0 {
		l.slots = make(chan struct{}, h.MaxConcurrent)
	}
	runner := w.opt.Runners[h.Type]
	if runner == nil {
		l.err = fmt.Errorf("this worker does not run handlers of type %q; give the hook a pool whose workers do", h.Type)
	} else {
		l.handler, l.err = runner.Load(*h, Site{Dirs: w.dirs(cfg), Python: cfg.Python})
	}
	if _, asks := l.handler.(*conditional); asks {
		l.inline = false // its condition may take time
	}
	if l.err != nil && h.Preset != "" {
		// Programs with handlers of their own need not serve hooks of presets.
		w.opt.Logger.Debug("the worker does not run a hook of a preset", "hook", h.Name, "preset", h.Preset, "error", l.err)
		l.handler, l.err = HandlerFunc(func(context.Context, *schema.Event) (r schema.Result, err error) { return r, nil }), nil
	}
	return l
}

// dirs returns the folders of programs and modules: the worker's own folders, or else the
// folder of the configuration file, and python_path. A relative folder of python_path is
// relative to each folder before it, not to the worker's current folder.
func (w *Worker) dirs(cfg *schema.Config) []string {
	own := w.opt.Dirs
	if len(own) == 0 && cfg.Dir != "" {
		own = []string{cfg.Dir}
	}
	dirs := slices.Clone(own)
	for _, dir := range cfg.PythonPath {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
			continue
		}
		for _, base := range own {
			dirs = append(dirs, filepath.Join(base, dir))
		}
	}
	return dirs
}

func (v *version) loadErrors() map[string]string {
	var errs map[string]string
	for i := range v.hooks {
		if l := &v.hooks[i]; l.err != nil {
			if errs == nil {
				errs = make(map[string]string)
			}
			errs[l.hook.Name] = l.err.Error()
		}
	}
	return errs
}

// A Condition reports whether to call a hook for an event. It gets the status that `when`
// conditions use, and the complete event. It must change neither.
type Condition func(ctx context.Context, s *schema.LoopStatus, e *schema.Event) (bool, error)

// When returns a handler that calls h only if cond is true; otherwise the hook has no
// opinion. Use it for conditions that a `when` in hooks.yaml cannot express. The fabric
// evaluates a `when` before it sends a batch, so a `when` is cheaper.
//
// A condition that returns an error or panics counts as true, so that an error does not
// switch a policy off. The result then has an entry in hook_errors. The condition's time
// counts as the hook's time. A condition that still runs at the deadline means that the
// hook did not answer.
func When(cond Condition, h Handler) Handler { return &conditional{cond: cond, handler: h} }

// conditional is a handler with a condition.
type conditional struct {
	cond    Condition
	handler Handler
}

// Handle evaluates the condition first. If both fail, it returns one error.
func (c *conditional) Handle(ctx context.Context, e *schema.Event) (schema.Result, error) {
	status := e.LoopStatus()
	holds, failure := c.holds(ctx, &status, e)
	switch {
	case ctx.Err() != nil:
		return schema.Result{}, fmt.Errorf("its condition took all its time: %w", context.Cause(ctx))
	case failure == nil && !holds:
		return schema.Result{}, nil
	case failure == nil:
		return c.handler.Handle(ctx, e)
	}
	note := fmt.Errorf("its condition %w, and counts as true", failure)
	res, err := c.handler.Handle(ctx, e)
	if err != nil {
		return res, fmt.Errorf("%w; %w", err, note)
	}
	res.HookErrors = append([]string{note.Error()}, res.HookErrors...)
	return res, nil
}

// holds evaluates the condition, and turns a panic into an error.
func (c *conditional) holds(ctx context.Context, s *schema.LoopStatus, e *schema.Event) (holds bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked: %v", p)
		}
	}()
	if holds, err = c.cond(ctx, s, e); err != nil {
		err = fmt.Errorf("failed: %w", err)
	}
	return holds, err
}

// Close closes the handler, if it can be closed.
func (c *conditional) Close() error {
	if closer, ok := c.handler.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}
