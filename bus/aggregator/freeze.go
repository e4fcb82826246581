package aggregator

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

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
	Now() *freezes.State
	// Unreadable returns why the stored freezes may differ from the known ones; nil: they are the
	// same.
	Unreadable() error
	// Freeze and Thaw change the freezes if they have the version known; nil: any version.
	Freeze(ctx context.Context, z schema.Freeze, known *uint64) (freezes.Change, error)
	Thaw(ctx context.Context, agents string, known *uint64) (freezes.Change, error)
}

// frozen is the freezes in the form that denies calls.
type frozen struct {
	*freezes.State

	refuse *guard.Freezes // nil: no agent is frozen
	// nothing is the encoded verdict of a call that no hook matches, with the version of the
	// freezes; nil: not encoded yet.
	nothing atomic.Pointer[emptied]
}

// A freezeState has the current freezes.
type freezeState struct {
	current atomic.Pointer[frozen] // nil: there never was a freeze
	slots   chan struct{}          // held by each request to freeze or thaw
}

// emptied is an empty verdict of a configuration.
type emptied struct {
	of   *active
	data []byte
}

// froze applies new freezes.
func (a *Aggregator) froze(s *freezes.State) {
	before := a.freezes.current.Load()
	if before == nil && s.Version == 0 {
		return // there never was a freeze
	}
	refuse, err := guard.CompileFreezes(s.Freezes)
	if err != nil {
		a.opt.Logger.Error("cannot apply the stored freezes; the ones that were read last stay in effect", "version", s.Version, "error", err)
		return
	}
	a.freezes.current.Store(&frozen{State: s, refuse: refuse})
	a.report.Metrics.Frozen(s.Freezes)
	a.tellFrozen(before, s)
	if a.opt.Froze != nil {
		a.opt.Froze(s.Version)
	}
}

// tellFrozen logs the agents that were frozen and thawed.
func (a *Aggregator) tellFrozen(before *frozen, s *freezes.State) {
	var old []schema.Freeze
	if before != nil {
		old = before.Freezes
	}
	among := func(all []schema.Freeze, z schema.Freeze) bool {
		return slices.ContainsFunc(all, func(o schema.Freeze) bool { return o.Agents == z.Agents && o.Since.Equal(z.Since) })
	}
	for _, z := range s.Freezes {
		if !among(old, z) {
			a.opt.Logger.Warn("tool calls are frozen", "agents", z.Agents, "by", z.By, "reason", z.Reason, "since", z.Since)
		}
	}
	for _, z := range old {
		if !among(s.Freezes, z) {
			a.opt.Logger.Warn("tool calls are no longer frozen", "agents", z.Agents, "since", z.Since)
		}
	}
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
func (f *frozen) by(act *active, r *schema.Routing) *schema.Freeze {
	if f == nil || f.refuse == nil {
		return nil
	}
	return f.refuse.Refuses(guard.Call{Agent: r.Agent, Event: r.Event, Tool: r.Tool}, act.terminalTools)
}

// overtaken denies a call whose agent was frozen while it was judged, unless the call does not pass
// anyway. Items that the verdict carried come again.
func (a *Aggregator) overtaken(act *active, r *schema.Routing, v *schema.Verdict) {
	f := a.freezes.current.Load()
	v.FreezeVersion = f.version()
	z := f.by(act, r)
	if z == nil || r.Event.Terminal(v.Decision) {
		return
	}
	a.report.Metrics.FreezeRefused(observe.FrozenUnderWay)
	*v = schema.Verdict{
		Decision: schema.Deny, Reason: z.Refusal(r.Tool, act.terminalTools), Frozen: true, FreezeVersion: f.version(),
		ExecutedHooks: v.ExecutedHooks, HookErrors: v.HookErrors, Acked: v.Acked, Terminate: v.Terminate,
	}
}

// nothing returns the encoded verdict of a call that no hook matches, and that f lets pass.
func (a *Aggregator) nothing(act *active, f *frozen) []byte {
	if f == nil {
		return act.nothing
	}
	if n := f.nothing.Load(); n != nil && n.of == act {
		return n.data
	}
	v := a.finish(&schema.Verdict{}, &act.Config)
	v.FreezeVersion = f.Version
	data, err := schema.Marshal(v)
	if err != nil {
		a.opt.Logger.Error("cannot encode the empty verdict", "error", err)
		return act.nothing
	}
	f.nothing.Store(&emptied{act, data})
	return data
}

// terminalTools returns the tools that pass a freeze: those that the gates of a configuration let
// pass, for any agent, or else the default ones.
func terminalTools(stages []staged) (all []string) {
	for i := range stages {
		t, ok := stages[i].gate.(Terminator)
		if !ok {
			continue
		}
		for _, tool := range t.Terminal() {
			if !slices.Contains(all, tool) {
				all = append(all, tool)
			}
		}
	}
	if len(all) == 0 {
		return schema.TerminalTools()
	}
	return all
}

// freezeGauges returns the gauges for the version of the freezes that calls are answered by, and
// for whether the stored freezes can be read.
func (a *Aggregator) freezeGauges() []prometheus.Collector {
	version := prometheus.GaugeOpts{Namespace: "hookfabric", Name: "freeze_version", Help: "Version of the freezes that this broker applies, 0 if there never was a freeze."}
	unreadable := prometheus.GaugeOpts{Namespace: "hookfabric", Name: "freezes_unreadable",
		Help: "1 while the stored freezes cannot be read and the broker applies those that it read last, else 0. Alert on this."}
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(version, func() float64 {
			if f := a.freezes.current.Load(); f != nil {
				return float64(f.Version)
			}
			return 0
		}),
		prometheus.NewGaugeFunc(unreadable, func() float64 {
			if a.opt.Freezes.Unreadable() != nil {
				return 1
			}
			return 0
		}),
	}
}
