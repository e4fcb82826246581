package aggregator

import (
	"log/slog"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus/aggregator/control"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/stages"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/state/freezes"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// An operator may freeze agents. The broker then denies every tool call of such an agent, except of
// the tools that end a round. A freeze is not a hook: it comes before all hooks, the configuration
// cannot change it, and no failure lets a call pass it. A call that is under way when the freeze
// comes is denied when its verdict is due. Other events pass, so that an agent without tools can
// still end its turn.

// Freezes is the part of [freezes.Freezes] that the aggregator uses.
type Freezes interface {
	// Use registers a function that gets the freezes, at once and after each change.
	Use(use func(*freezes.State))
	// Unreadable returns why the stored freezes may differ from the known ones; nil: they are the
	// same.
	Unreadable() error

	control.Freezes
}

// frozen is the freezes in the form that denies calls.
type frozen struct {
	*freezes.State

	refuse *guard.Freezes // nil: no agent is frozen
}

// A freezeState has the freezes that calls are judged by.
type freezeState struct {
	current atomic.Pointer[frozen] // nil: there never was a freeze
	metrics *observe.Metrics
	log     *slog.Logger
	// applied receives the version of the freezes that this broker applies; nil: it is not reported.
	applied func(version uint64)
}

// now returns the current freezes; nil: there never was a freeze.
func (z *freezeState) now() *frozen { return z.current.Load() }

// use applies new freezes.
func (z *freezeState) use(s *freezes.State) {
	before := z.now()
	if before == nil && s.Version == 0 {
		return // there never was a freeze
	}
	refuse, err := guard.CompileFreezes(s.Freezes)
	if err != nil {
		z.log.Error("cannot apply the stored freezes; the ones that were read last stay in effect", "version", s.Version, "error", err)
		return
	}
	z.current.Store(&frozen{State: s, refuse: refuse})
	z.metrics.Frozen(s.Freezes)
	z.logChange(before.freezes(), s.Freezes)
	if z.applied != nil {
		z.applied(s.Version)
	}
}

// logChange logs the agents that were frozen and thawed.
func (z *freezeState) logChange(before, now []schema.Freeze) {
	among := func(all []schema.Freeze, f schema.Freeze) bool {
		return slices.ContainsFunc(all, func(o schema.Freeze) bool { return o.Agents == f.Agents && o.Since.Equal(f.Since) })
	}
	for _, f := range now {
		if !among(before, f) {
			z.log.Warn("tool calls are frozen", "agents", f.Agents, "by", f.By, "reason", f.Reason, "since", f.Since)
		}
	}
	for _, f := range before {
		if !among(now, f) {
			z.log.Warn("tool calls are no longer frozen", "agents", f.Agents, "since", f.Since)
		}
	}
}

// freezes returns the active freezes.
func (f *frozen) freezes() []schema.Freeze {
	if f == nil {
		return nil
	}
	return f.Freezes
}

// version returns the version of the freezes; 0: there never was a freeze.
func (f *frozen) version() uint64 {
	if f == nil {
		return 0
	}
	return f.Version
}

// by returns the freeze that denies a call; nil: none. It runs at every event, and costs one load
// while no agent is frozen.
func (f *frozen) by(act *stages.Config, r *schema.Routing) *schema.Freeze {
	if f == nil || f.refuse == nil {
		return nil
	}
	return f.refuse.Refuses(guard.Call{Agent: r.Agent, Event: r.Event, Tool: r.Tool}, act.TerminalTools)
}

// checkFreeze denies calls of frozen agents. The acknowledgements of such an event still count.
func (j *judging) checkFreeze(e *event) bool {
	e.frozen = j.freezes.now()
	z := e.frozen.by(e.act, &e.Req.Routing)
	if z == nil {
		return true
	}
	j.intake.EndBeat(e.Arrival)
	e.verdict = schema.Verdict{Decision: schema.Deny, Reason: z.Refusal(e.Req.Tool, e.act.TerminalTools), Frozen: true, FreezeVersion: e.frozen.version()}
	j.report.Metrics.FreezeRefused(observe.FrozenAsked)
	e.plan, e.asked = e.act.Plan(e.Req.Agent, e.Req.Event, e.Req.Tool), e.request()
	j.remember(e)
	e.decided()
	j.answer(e, e.Answered())
	return false
}

// overtake denies a call whose agent was frozen while it was judged, unless the call does not pass
// anyway. Items that the verdict carried come again.
func (z *freezeState) overtake(act *stages.Config, r *schema.Routing, v *schema.Verdict) {
	f := z.now()
	v.FreezeVersion = f.version()
	by := f.by(act, r)
	if by == nil || r.Event.Terminal(v.Decision) {
		return
	}
	z.metrics.FreezeRefused(observe.FrozenUnderWay)
	*v = schema.Verdict{
		Decision: schema.Deny, Reason: by.Refusal(r.Tool, act.TerminalTools), Frozen: true, FreezeVersion: f.version(),
		ExecutedHooks: v.ExecutedHooks, HookErrors: v.HookErrors, Acked: v.Acked, Terminate: v.Terminate,
	}
}

// gauges returns the gauges for the version of the freezes that calls are answered by, and for
// whether the stored freezes can be read.
func (z *freezeState) gauges(stored Freezes) []prometheus.Collector {
	version := prometheus.GaugeOpts{Namespace: "hookfabric", Name: "freeze_version", Help: "Version of the freezes that this broker applies, 0 if there never was a freeze."}
	unreadable := prometheus.GaugeOpts{Namespace: "hookfabric", Name: "freezes_unreadable",
		Help: "1 while the stored freezes cannot be read and the broker applies those that it read last, else 0. Alert on this."}
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(version, func() float64 { return float64(z.now().version()) }),
		prometheus.NewGaugeFunc(unreadable, func() float64 {
			if stored.Unreadable() != nil {
				return 1
			}
			return 0
		}),
	}
}
