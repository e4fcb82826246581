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

// keptVersions is how many config versions [Worker.Load] keeps, so that calls
// that are pinned to an older one still run.
const keptVersions = 3

// version is one configuration with its handlers loaded.
type version struct {
	config *schema.Config
	hooks  []loaded // by hook id; those of other pools, and stages of the aggregator, are empty
	// users are the batches that run by it, and one more while it is held: at
	// zero its handlers are closed, and it is not used again.
	users atomic.Int64
	// served: it was active here, so that calls may have begun by it; until is
	// when it is let go of, zero while it is kept. Both are guarded by holding.
	served bool
	until  time.Time
}

// loaded is one hook that is ready to run, or why it is not.
type loaded struct {
	hook    *schema.Hook
	handler Handler
	err     error
	inline  bool
	history bool          // it needs the conversation
	native  bool          // it needs the runtime's own payload
	slots   chan struct{} // max_concurrent; nil: unbounded
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
func (w *Worker) Prepare(cfg schema.Config) map[string]string { return w.prepare(cfg, w.hold) }

// prepare is Prepare, with what is done with a version that was loaded.
func (w *Worker) prepare(cfg schema.Config, hold func(*version)) map[string]string {
	if v := w.held(&cfg); v != nil {
		return v.loadErrors() // at once, also while another one takes its time
	}
	w.loading.Lock()
	defer w.loading.Unlock()
	if v := w.held(&cfg); v != nil {
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

// maxComplaints bounds the lines of the log about one version.
const maxComplaints = 20

// complain logs what could not be loaded.
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

// held is the version that cfg is, if it is held.
func (w *Worker) held(cfg *schema.Config) *version {
	if v := (*w.versions.Load())[cfg.Version]; v != nil && v.config.Fabric == cfg.Fabric {
		return v
	}
	return nil
}

// hold holds v beside the other versions of its fabric.
func (w *Worker) hold(v *version) {
	w.holding.Lock()
	defer w.holding.Unlock()
	w.add(v)
}

// holdWanted is hold for a version that took its time, if the last update still
// names it. By then the numbers may be another fabric's.
func (w *Worker) holdWanted(v *version) {
	w.holding.Lock()
	defer w.holding.Unlock()
	if v.config.Fabric == w.fabric && slices.Contains(w.kept, v.config.Version) {
		w.add(v)
		return
	}
	w.leave(v)
}

// add is hold under its lock.
func (w *Worker) add(v *version) {
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

// trim lets go of what was prepared and is not held on to.
func (w *Worker) trim() {
	w.holding.Lock()
	defer w.holding.Unlock()
	w.drop()
}

// replace holds the versions in next and lets go of all others.
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
			return nil // it was dropped meanwhile
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
	l := loaded{hook: h, history: slices.Contains(h.Needs, schema.NeedHistory), native: slices.Contains(h.Needs, schema.NeedNative)}
	l.inline = slices.Contains(w.opt.Inline, h.Type) && !l.history // a conversation may have to be fetched
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
		l.inline = false // nobody knows how long its condition takes
	}
	if l.err != nil && h.Preset != "" {
		// Nobody wrote it: programs with handlers of their own need not serve it.
		w.opt.Logger.Debug("the worker does not run a hook of a preset", "hook", h.Name, "preset", h.Preset, "error", l.err)
		l.handler, l.err = HandlerFunc(func(context.Context, *schema.Event) (r schema.Result, err error) { return r, nil }), nil
	}
	return l
}

// dirs are where programs and modules are looked up: the worker's own folders,
// else the one of the configuration's file, and python_path. A folder of that
// which is relative lies in each of those before it, not where the worker
// happens to run.
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
