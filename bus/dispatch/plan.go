package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// A Plan is the hooks for one event: waves that run one after the other, and shadow hooks
// that no verdict waits for. String prints it.
type Plan struct {
	// Waves run one after the other.
	Waves []Wave
	// Shadow batches run after the verdict.
	Shadow []Batch
	// Guarded means that the plan has a fail-closed hook.
	Guarded bool
	// Deliver are the delivery hooks, and Gates the hooks that refuse tools by the
	// agent's round. They are stages of the aggregator and not in waves.
	Deliver, Gates []int
}

// A Wave has batches that run side by side.
type Wave []Batch

// A Batch has consecutive hooks of one pool that travel in one request.
type Batch struct {
	Pool       string
	Idempotent bool
	// Readonly means that no hook of it rewrites, so that it may run beside its
	// neighbours.
	Readonly bool
	// Conditional means that some hook of it has a condition.
	Conditional bool
	// Hooks are indexes into the configuration, in registration order.
	Hooks []int
}

// Empty reports whether no hook runs.
func (p *Plan) Empty() bool { return len(p.Waves) == 0 && len(p.Shadow) == 0 }

// String prints a plan as waves of pools with their hooks.
func (p *Plan) String() string {
	var b strings.Builder
	for i, w := range p.Waves {
		if i > 0 {
			b.WriteString(" → ")
		}
		for j, batch := range w {
			if j > 0 {
				b.WriteString(" ∥ ")
			}
			fmt.Fprintf(&b, "%s%v", batch.Pool, batch.Hooks)
		}
	}
	for _, batch := range p.Shadow {
		fmt.Fprintf(&b, " (shadow %s%v)", batch.Pool, batch.Hooks)
	}
	if len(p.Gates) > 0 {
		fmt.Fprintf(&b, " (gates %v)", p.Gates)
	}
	if len(p.Deliver) > 0 {
		fmt.Fprintf(&b, " (delivers %v)", p.Deliver)
	}
	return b.String()
}

// plan makes the plan of one event in the order of the configuration: global hooks, then
// the agent's own. Only hooks with an index below before come into waves.
func (s *Snapshot) plan(sc *scope, key planKey, before int) *Plan {
	p := &Plan{}
	var path, shadow []Batch
	for _, i := range s.rules.Asked(sc.own, key.event, key.tool) {
		h := &s.Config.Hooks[i]
		p.Guarded = p.Guarded || s.rules.Guards(i)
		switch {
		case h.Stage():
			s.addStage(p, i)
		case h.Mode == schema.Shadow:
			// Each shadow hook has its own batch, so that its answer does not hide the
			// next hook.
			shadow = append(shadow, batchOf(i, h))
		case i < before:
			path = appendHook(path, i, h)
		}
	}
	p.Waves, p.Shadow = waves(path), shadow
	return p
}

// appendHook puts a hook into the last batch if the pool and idempotence are equal and
// its condition does not follow a rewriting hook. Conditions are evaluated before a batch
// runs, and must see the rewritten input.
func appendHook(batches []Batch, i int, h *schema.Hook) []Batch {
	if n := len(batches); n > 0 {
		b := &batches[n-1]
		if b.Pool == h.Pool && b.Idempotent == h.Idempotent && (h.When == "" || b.Readonly) {
			b.Hooks = append(b.Hooks, i)
			b.Readonly = b.Readonly && h.Readonly
			b.Conditional = b.Conditional || h.When != ""
			return batches
		}
	}
	return append(batches, batchOf(i, h))
}

func batchOf(i int, h *schema.Hook) Batch {
	return Batch{
		Pool: h.Pool, Idempotent: h.Idempotent, Readonly: h.Readonly,
		Conditional: h.When != "", Hooks: []int{i},
	}
}

// waves puts neighbouring readonly batches side by side.
func waves(batches []Batch) []Wave {
	var ws []Wave
	for i, b := range batches {
		if i > 0 && b.Readonly && batches[i-1].Readonly {
			ws[len(ws)-1] = append(ws[len(ws)-1], b)
			continue
		}
		ws = append(ws, Wave{b})
	}
	return ws
}

// A Snapshot is one config version, compiled. Every call is pinned to one.
type Snapshot struct {
	Config schema.Config

	rules *guard.Rules   // which hooks run for which calls
	when  []Condition    // by hook; nil: always
	index map[string]int // hook names to indexes

	plans atomic.Int64 // about how many plans all scopes cache

	mu     sync.RWMutex
	agents map[string]*scope    // by agent id; guarded by mu, bounded
	scopes map[guard.Own]*scope // guarded by mu, bounded by the file
}

// scope is the configuration for all agents that match the same patterns.
type scope struct {
	own guard.Own

	mu    sync.RWMutex
	plans map[planKey]*Plan // guarded by mu, bounded
}

type planKey struct {
	event schema.EventType
	tool  string
}

// Clients choose the names of agents and tools, so the caches are bounded. A full cache
// is emptied: making a plan again costs microseconds. There can be as many scopes as
// agents, so maxAllPlans bounds their plans together.
const (
	maxAgents   = 1 << 16
	maxPlans    = 1 << 12
	maxAllPlans = 1 << 17
)

// Compile prepares a configuration for planning. The function condition compiles
// conditions; if it is nil, a configuration with conditions is an error.
func Compile(cfg schema.Config, condition func(expr string) (Condition, error)) (*Snapshot, error) {
	s := &Snapshot{
		Config: cfg,
		when:   make([]Condition, len(cfg.Hooks)),
		agents: make(map[string]*scope),
		scopes: make(map[guard.Own]*scope),
		index:  make(map[string]int, len(cfg.Hooks)),
	}
	condition = compileOnce(condition)
	var errs []error
	rules := make([]schema.PolicyHook, len(cfg.Hooks))
	for i := range cfg.Hooks {
		h := &cfg.Hooks[i]
		s.index[h.Name], rules[i] = i, guard.RuleOf(h)
		errs = append(errs, s.compileHook(i, h, condition))
	}
	var err error
	s.rules, err = guard.Compile(rules, cfg.Overrides)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	return s, nil
}

// compileOnce caches compiled conditions by their text, because a file often has one
// condition for many hooks.
func compileOnce(compile func(string) (Condition, error)) func(string) (Condition, error) {
	if compile == nil {
		return nil
	}
	compiled := make(map[string]Condition)
	return func(expr string) (c Condition, err error) {
		c, ok := compiled[expr]
		if !ok {
			if c, err = compile(expr); err == nil {
				compiled[expr] = c
			}
		}
		return c, err
	}
}

func (s *Snapshot) compileHook(i int, h *schema.Hook, condition func(string) (Condition, error)) (err error) {
	if !h.Event.Known() {
		return fmt.Errorf("hook %q: unknown event %q", h.Name, h.Event)
	}
	if h.When == "" {
		return nil
	}
	if condition == nil {
		return fmt.Errorf("hook %q: this program cannot evaluate conditions; remove the member when", h.Name)
	}
	if s.when[i], err = condition(h.When); err != nil {
		return fmt.Errorf("hook %q: when: %w", h.Name, err)
	}
	return nil
}

// Plan returns the plan for an event of an agent about a tool.
func (s *Snapshot) Plan(agent string, t schema.EventType, tool string) *Plan {
	sc, key := s.scope(agent), keyOf(t, tool)
	sc.mu.RLock()
	p := sc.plans[key]
	sc.mu.RUnlock()
	if p != nil {
		return p
	}
	p = s.plan(sc, key, len(s.Config.Hooks))
	s.cachePlan(sc, key, p)
	return p
}

// cachePlan stores a plan for later calls with the same key.
func (s *Snapshot) cachePlan(sc *scope, key planKey, p *Plan) {
	sc.mu.Lock()
	before := len(sc.plans)
	if before >= maxPlans {
		clear(sc.plans)
	}
	sc.plans[key] = p
	more := len(sc.plans) - before
	sc.mu.Unlock()
	if s.plans.Add(int64(more)) > maxAllPlans {
		s.clearCaches()
	}
}

// clearCaches empties the caches. Calls in progress are not affected.
func (s *Snapshot) clearCaches() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.agents)
	clear(s.scopes)
	s.plans.Store(0)
}

// PlanBefore returns the plan of a call that the hook at that index ends. It is
// [Snapshot.Plan] with only the hooks before that index in its waves. It is not cached.
func (s *Snapshot) PlanBefore(agent string, t schema.EventType, tool string, hook int) *Plan {
	return s.plan(s.scope(agent), keyOf(t, tool), hook)
}

// keyOf returns the cache key; it has no tool at events without one.
func keyOf(t schema.EventType, tool string) planKey {
	if !t.HasTool() {
		tool = ""
	}
	return planKey{t, tool}
}

// Guards reports whether a fail-closed hook guards a call that cannot be planned. An
// empty tool or agent matches any.
func (s *Snapshot) Guards(agent string, t schema.EventType, tool string) bool {
	return s.rules.Guard(guard.Call{Agent: agent, Event: t, Tool: tool}) != nil
}

func (s *Snapshot) scope(agent string) *scope {
	s.mu.RLock()
	sc := s.agents[agent]
	s.mu.RUnlock()
	if sc != nil {
		return sc
	}
	own := s.rules.Of(agent)
	s.mu.Lock()
	defer s.mu.Unlock()
	if sc = s.scopes[own]; sc == nil {
		sc = &scope{own: own, plans: make(map[planKey]*Plan)}
		if len(s.scopes) >= maxPlans {
			clear(s.scopes)
		}
		s.scopes[own] = sc
	}
	if len(s.agents) >= maxAgents {
		clear(s.agents)
	}
	s.agents[agent] = sc
	return sc
}

// addStage puts a stage of the aggregator into a plan, if it applies to its event. Of
// several stages with one handler the last one counts, at its place.
func (s *Snapshot) addStage(p *Plan, i int) {
	h := &s.Config.Hooks[i]
	same := func(j int) bool { return s.Config.Hooks[j].Handler == h.Handler }
	switch {
	case h.Mode == schema.Shadow:
		// A shadow stage delivers nothing: an item can be delivered only once.
	case h.Gates() && h.Event == schema.PreToolUse:
		p.Gates = append(slices.DeleteFunc(p.Gates, same), i)
	case h.Delivers() && h.Event.TakesDelivery():
		p.Deliver = append(slices.DeleteFunc(p.Deliver, same), i)
	}
}

// Stages returns a plan with only the stages for an event of an agent, for all tools. It
// is not cached.
func (s *Snapshot) Stages(agent string, t schema.EventType) *Plan {
	sc, p := s.scope(agent), &Plan{}
	for i := range s.Config.Hooks {
		if h := &s.Config.Hooks[i]; h.Stage() && h.Event == t && s.rules.Concerns(sc.own, i) {
			s.addStage(p, i)
		}
	}
	return p
}

// Place puts the result of a stage into a verdict, at the place of its hook in
// registration order. The row and the injections get the hook's name.
func (s *Snapshot) Place(v *schema.Verdict, hook int, row schema.ExecutedHook, injections []schema.Injection) {
	row.Hook = s.Config.Hooks[hook].Name
	v.ExecutedHooks = slices.Insert(v.ExecutedHooks, placeOf(v.ExecutedHooks, func(x *schema.ExecutedHook) bool { return s.behind(x.Hook, hook) }), row)
	injections = slices.Clone(injections)
	for i := range injections {
		injections[i].Hook = row.Hook
	}
	v.Injections = slices.Insert(v.Injections, placeOf(v.Injections, func(x *schema.Injection) bool { return s.behind(x.Hook, hook) }), injections...)
}

// placeOf returns the index of the first item for which behind is true, or len(items).
func placeOf[T any](items []T, behind func(*T) bool) int {
	for i := range items {
		if behind(&items[i]) {
			return i
		}
	}
	return len(items)
}

// behind reports whether the named hook is registered after the other.
func (s *Snapshot) behind(name string, hook int) bool {
	i, ok := s.index[name]
	return ok && i > hook
}
