package observe

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/schema"
)

// Metrics are the metrics for operators. No label comes from an agent, a session, an input or a
// tool. The configuration bounds hooks and pools, and every other label is from a fixed list.
type Metrics struct {
	Reruns        *prometheus.CounterVec // pool
	Conditions    *prometheus.CounterVec // hook
	Unjudged      *prometheus.CounterVec // decision
	Histories     *prometheus.CounterVec // outcome
	Shed          *prometheus.CounterVec // cause
	Limited       *prometheus.CounterVec // limit
	ShadowDropped prometheus.Counter
	Malformed     prometheus.Counter
	Dropped       prometheus.Counter // records of the feed
	InFlight      prometheus.Gauge

	requests   *prometheus.CounterVec   // event, decision
	duration   *prometheus.HistogramVec // event
	queue      *prometheus.HistogramVec // pool
	hooks      *prometheus.HistogramVec // hook
	outcomes   *prometheus.CounterVec   // hook, outcome
	failOpen   *prometheus.CounterVec   // hook, cause
	failClosed *prometheus.CounterVec   // hook, cause
	batches    *prometheus.HistogramVec // pool
	would      *prometheus.CounterVec   // hook, decided, would
	rewrites   *prometheus.CounterVec   // hook
	frozen     *prometheus.GaugeVec     // scope
	refusals   *prometheus.CounterVec   // when
	config     prometheus.Gauge

	events map[schema.EventType]*eventMetrics

	// configuring is held while the series are fitted to a configuration. With thousands of hooks
	// that takes a while, in which calls are still counted.
	configuring sync.Mutex

	// active are the series of the configuration. They are replaced under mu, and never changed.
	// To make a series of a hook, hold mu for reading.
	mu     sync.RWMutex
	active atomic.Pointer[series]
}

// series are those of a configuration, by the names of its hooks and of their pools.
type series struct {
	hooks map[string]*hookMetrics
	pools map[string]*poolMetrics
}

// poolMetrics are the series of one pool, resolved once.
type poolMetrics struct{ batches, queue prometheus.Observer }

// eventMetrics are the series of one event, resolved once.
type eventMetrics struct {
	duration prometheus.Observer
	requests map[schema.Decision]prometheus.Counter
}

// hookMetrics are the series of one hook, resolved once.
type hookMetrics struct {
	duration prometheus.Observer
	outcomes map[schema.OutcomeKind]prometheus.Counter
	open     map[schema.OutcomeKind]prometheus.Counter
	closed   map[schema.OutcomeKind]prometheus.Counter
	shadow   bool // it has those of a shadow hook; guarded by configuring
}

// seconds are the buckets of every duration: from 50 µs, below which nothing
// travels, to beyond the default timeout.
var seconds = []float64{
	.00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60,
}

// Labels are the label values that have a series from the beginning, so that an alert sees a zero
// before the first failure.
type Labels struct {
	Shed, Limits, Parts, Unjudged []string
}

// NewMetrics returns metrics that reg takes. If reg is nil, they are only counted.
func NewMetrics(reg prometheus.Registerer, labels Labels) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "hookfabric", Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "hookfabric", Name: name, Help: help, Buckets: buckets}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "hookfabric", Name: name, Help: help})
	}
	m := &Metrics{
		requests:      counter("requests_total", "Verdicts, by event and decision.", "event", "decision"),
		duration:      histogram("request_seconds", "Seconds from the arrival of an event to its verdict.", seconds, "event"),
		queue:         histogram("queue_seconds", "Seconds that batches waited for a free worker.", seconds, "pool"),
		hooks:         histogram("hook_seconds", "Run time of a hook in seconds.", seconds, "hook"),
		outcomes:      counter("hook_outcomes_total", "Hook runs, by outcome.", "hook", "outcome"),
		failOpen:      counter("fail_open_total", "Failures of a hook that counted as no opinion, by cause. Alert on this.", "hook", "cause"),
		failClosed:    counter("fail_closed_total", "Calls that were denied because a hook failed, by cause.", "hook", "cause"),
		batches:       histogram("batch_hooks", "Hooks per batch.", []float64{1, 2, 4, 8, 16, 32}, "pool"),
		Reruns:        counter("reruns_total", "Hooks that ran again because their worker was lost.", "pool"),
		Conditions:    counter("condition_errors_total", "Conditions that could not be evaluated and counted as true.", "hook"),
		would:         counter("shadow_total", "Calls, by their decision and by the decision that the shadow hook would have made.", "hook", "decided", "would"),
		rewrites:      counter("shadow_rewrites_total", "Calls that the shadow hook would have rewritten.", "hook"),
		Unjudged:      counter("unjudged_calls_total", "Calls that no broker judged, as shims report them, by the shim's decision. Alert on continue.", "decision"),
		Histories:     counter("history_parts_total", "Parts of conversations that agents' sides stored or asked for, by outcome. Alert on refused.", "outcome"),
		Shed:          counter("shed_total", "Events that waited too long to run their hooks, by cause. Alert on this.", "cause"),
		Limited:       counter("limited_total", "Events and control requests that were refused because one agent exceeded a limit, by limit.", "limit"),
		ShadowDropped: counter("shadow_dropped_total", "Shadow hooks that did not run because too many were under way, or their pool was half full.").WithLabelValues(),
		Malformed:     counter("malformed_total", "Events that the broker could not read.").WithLabelValues(),
		Dropped:       counter("feed_dropped_total", "Feed records that were dropped because the feed was full.").WithLabelValues(),
		refusals:      counter("freeze_refusals_total", "Tool calls that a freeze denied: asked (at once) or under_way (while their hooks ran).", "when"),
		InFlight:      gauge("in_flight", "Events under way in this aggregator."),
		config:        gauge("config_version", "The active version of the configuration, 0 before the first one."),
		events:        make(map[schema.EventType]*eventMetrics),
	}
	m.active.Store(new(series))
	m.startFrozen()
	for _, d := range labels.Unjudged {
		m.Unjudged.WithLabelValues(d)
	}
	for _, cause := range labels.Shed {
		m.Shed.WithLabelValues(cause)
	}
	for _, limit := range labels.Limits {
		m.Limited.WithLabelValues(limit)
	}
	for _, result := range labels.Parts {
		m.Histories.WithLabelValues(result)
	}
	for _, t := range schema.EventTypes() {
		e := &eventMetrics{duration: m.duration.WithLabelValues(string(t)), requests: make(map[schema.Decision]prometheus.Counter)}
		for _, d := range t.Decisions() {
			e.requests[d] = m.requests.WithLabelValues(string(t), string(d))
		}
		m.events[t] = e
	}
	if reg != nil {
		reg.MustRegister(m.requests, m.duration, m.queue, m.hooks, m.outcomes, m.failOpen, m.failClosed,
			m.batches, m.Reruns, m.Conditions, m.would, m.rewrites, m.Unjudged, m.Histories, m.Shed, m.Limited, m.ShadowDropped, m.Malformed, m.Dropped, m.frozen, m.refusals, m.InFlight, m.config)
	}
	return m
}

// Configure initialises the series of a configuration's hooks and pools, so
// that an alert on them sees a zero before the first failure, and drops those
// of hooks that are gone.
func (m *Metrics) Configure(cfg *schema.Config) {
	m.configuring.Lock()
	defer m.configuring.Unlock()
	m.config.Set(float64(cfg.Version))
	hooks, pools := make(map[string]*hookMetrics, len(cfg.Hooks)), make(map[string]*poolMetrics)
	for i := range cfg.Hooks {
		h := &cfg.Hooks[i]
		of := m.forHook(h.Name)
		if of == nil {
			of = m.hook(h.Name)
		}
		hooks[h.Name] = of
		m.configureShadow(of, h)
		if !h.Stage() && pools[h.Pool] == nil { // only the aggregator runs stages
			pools[h.Pool] = m.pool(h.Pool)
		}
	}
	m.mu.Lock()
	before := m.active.Swap(&series{hooks, pools})
	m.mu.Unlock()
	for name, of := range before.hooks {
		if hooks[name] == nil {
			m.drop(name, of)
		}
	}
	for pool := range before.pools {
		if pools[pool] == nil {
			m.queue.DeleteLabelValues(pool)
			m.batches.DeleteLabelValues(pool)
			m.Reruns.DeleteLabelValues(pool)
		}
	}
}

// pool makes the series of a pool.
func (m *Metrics) pool(name string) *poolMetrics {
	m.Reruns.WithLabelValues(name)
	return &poolMetrics{m.batches.WithLabelValues(name), m.queue.WithLabelValues(name)}
}

// drop drops the series of a hook that is gone. Each is named: to look for those of
// one hook among those of all would take seconds where there are thousands.
func (m *Metrics) drop(name string, of *hookMetrics) {
	m.hooks.DeleteLabelValues(name)
	m.Conditions.DeleteLabelValues(name)
	for _, k := range schema.OutcomeKinds() {
		m.outcomes.DeleteLabelValues(name, string(k))
		m.failOpen.DeleteLabelValues(name, string(k))
		m.failClosed.DeleteLabelValues(name, string(k))
	}
	m.dropShadow(name, of)
}

// configureShadow initialises the series of a shadow hook, and drops those of
// one that counts now.
func (m *Metrics) configureShadow(of *hookMetrics, h *schema.Hook) {
	if h.Mode != schema.Shadow {
		m.dropShadow(h.Name, of)
		return
	}
	of.shadow = true
	m.would.WithLabelValues(h.Name, string(schema.Continue), string(schema.Continue))
	m.rewrites.WithLabelValues(h.Name)
}

func (m *Metrics) dropShadow(name string, of *hookMetrics) {
	if of.shadow {
		of.shadow = false
		m.would.DeletePartialMatch(prometheus.Labels{"hook": name})
		m.rewrites.DeleteLabelValues(name)
	}
}

// shadowed counts what a shadow hook would have changed.
func (m *Metrics) shadowed(s *dispatch.Shadowed) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.forHook(s.Hook.Name) == nil {
		return // its configuration is not active any more
	}
	m.would.WithLabelValues(s.Hook.Name, string(s.Decided), string(s.Would)).Inc()
	if s.Rewrites {
		m.rewrites.WithLabelValues(s.Hook.Name).Inc()
	}
}

func (m *Metrics) hook(name string) *hookMetrics {
	h := &hookMetrics{
		duration: m.hooks.WithLabelValues(name),
		outcomes: make(map[schema.OutcomeKind]prometheus.Counter),
		open:     make(map[schema.OutcomeKind]prometheus.Counter),
		closed:   make(map[schema.OutcomeKind]prometheus.Counter),
	}
	m.Conditions.WithLabelValues(name)
	for _, k := range schema.OutcomeKinds() {
		h.outcomes[k] = m.outcomes.WithLabelValues(name, string(k))
		if k != schema.OK && k != schema.Late {
			h.open[k] = m.failOpen.WithLabelValues(name, string(k))
			h.closed[k] = m.failClosed.WithLabelValues(name, string(k))
		}
	}
	return h
}

func (m *Metrics) forPool(name string) *poolMetrics { return m.active.Load().pools[name] }

// Batch counts a batch and its number of hooks.
func (m *Metrics) Batch(pool string, hooks int) {
	if p := m.forPool(pool); p != nil {
		p.batches.Observe(float64(hooks))
	}
}

// Queued counts how long a batch waited for a worker.
func (m *Metrics) Queued(pool string, waited time.Duration) {
	if p := m.forPool(pool); p != nil {
		p.queue.Observe(waited.Seconds())
	}
}

func (m *Metrics) forHook(name string) *hookMetrics { return m.active.Load().hooks[name] }

// Verdict counts one answered event.
func (m *Metrics) Verdict(t *Answered, v *schema.Verdict, took time.Duration) {
	e := m.events[t.Event]
	if e == nil {
		return
	}
	e.duration.Observe(took.Seconds())
	if c := e.requests[v.Decision]; c != nil {
		c.Inc()
	}
	for i := range v.ExecutedHooks {
		x := &v.ExecutedHooks[i]
		h := m.executed(x)
		switch {
		case h == nil || x.Outcome == schema.OK:
		case t.Event.Terminal(x.Decision):
			h.closed[x.Outcome].Inc()
		case t.stopped(v):
			// its agent was over a limit, which is counted as that
		default:
			h.open[x.Outcome].Inc()
		}
	}
}

// Late counts an answer of a hook that came after its call was given up.
func (m *Metrics) Late(hook string) {
	if h := m.forHook(hook); h != nil {
		h.outcomes[schema.Late].Inc()
	}
}

// executed counts the outcome of a hook, and returns the hook's series; nil: it is not active any more.
func (m *Metrics) executed(x *schema.ExecutedHook) *hookMetrics {
	h := m.forHook(x.Hook)
	if h == nil {
		return nil
	}
	h.outcomes[x.Outcome].Inc()
	if x.Duration > 0 {
		h.duration.Observe(x.Duration.Std().Seconds())
	}
	return h
}

// The kinds of freezes, as labels of the gauge.
const (
	frozenAll    = "all"    // 1 if all agents are frozen, else 0
	frozenAgents = "agents" // the number of freezes of some agents
)

// When a call was refused because of a freeze.
const (
	FrozenAsked    = "asked"
	FrozenUnderWay = "under_way"
)

// startFrozen makes the series about freezes, all at zero.
func (m *Metrics) startFrozen() {
	m.frozen = prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "hookfabric", Name: "frozen",
		Help: "Active freezes, by scope: of all agents (1 or 0), or of some (their number)."}, []string{"scope"})
	for _, when := range []string{FrozenAsked, FrozenUnderWay} {
		m.refusals.WithLabelValues(when)
	}
	m.Frozen(nil)
}

// Frozen sets the gauges for active freezes.
func (m *Metrics) Frozen(all []schema.Freeze) {
	everybody, some := 0, 0
	for i := range all {
		if all[i].Agents == schema.AllAgents {
			everybody++
		} else {
			some++
		}
	}
	m.frozen.WithLabelValues(frozenAll).Set(float64(everybody))
	m.frozen.WithLabelValues(frozenAgents).Set(float64(some))
}

// FreezeRefused counts a call that a freeze refused.
func (m *Metrics) FreezeRefused(when string) { m.refusals.WithLabelValues(when).Inc() }
