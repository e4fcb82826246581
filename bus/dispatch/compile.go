package dispatch

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

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
