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

// An operator may freeze agents: every call of a tool is refused then, but of those that
// only end a round. A freeze is no hook. It comes before all of them, whatever the
// configuration says, and nothing that fails lets a call pass it. Calls that are under way
// when it comes are refused when they would be answered. Other events are not touched:
// an agent that can use no tool may still come to an end.

// Freezes is what is used of a [freezes.Freezes].
type Freezes interface {
	// Use hears what is frozen, at once and whenever it changes.
	Use(use func(*freezes.State))
	Now() *freezes.State
	// Unreadable is why what is stored is not what is known; nil: it is.
	Unreadable() error
	// Freeze and Thaw change that, if it has the version that the asker knows; nil: whatever it has.
	Freeze(ctx context.Context, z schema.Freeze, known *uint64) (freezes.Change, error)
	Thaw(ctx context.Context, agents string, known *uint64) (freezes.Change, error)
}

// frozen is what is frozen, in the form in which calls are refused by it.
type frozen struct {
	*freezes.State

	refuse *guard.Freezes // nil: nothing is
	// nothing is the encoded verdict of a call that no hook matches, with the version
	// of what is frozen; nil: nobody needed it yet.
	nothing atomic.Pointer[emptied]
}

// A freezeState is what is frozen now.
type freezeState struct {
	current atomic.Pointer[frozen] // nil: there never was a freeze
	slots   chan struct{}          // held by each request to freeze or thaw
}

// emptied is an empty verdict of a configuration.
type emptied struct {
	of   *active
	data []byte
}

// froze takes over what is frozen from now on.
func (a *Aggregator) froze(s *freezes.State) {
	before := a.freezes.current.Load()
	if before == nil && s.Version == 0 {
		return // nothing ever was
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

// tellFrozen logs what was frozen and what was thawed.
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

// version is that of what is frozen; 0: nothing ever was.
func (f *frozen) version() uint64 {
	if f == nil {
		return 0
	}
	return f.Version
}

// by is the freeze that refuses a call; nil: none does. It is asked at every
// event: while nothing is frozen it costs one load.
func (f *frozen) by(act *active, r *schema.Routing) *schema.Freeze {
	if f == nil || f.refuse == nil {
		return nil
	}
	return f.refuse.Refuses(guard.Call{Agent: r.Agent, Event: r.Event, Tool: r.Tool}, act.terminalTools)
}

// overtaken refuses a call whose agent was frozen while it was judged, unless it does
// not pass anyway. What waits for the agent and was taken along comes again.
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

// nothing is the encoded verdict of a call that no hook matches, and that f lets pass.
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

// terminalTools are the tools that pass a freeze: those that the gates of a
// configuration let pass, whoever's they are, or else the usual ones.
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

// freezeGauges say which version of what is frozen calls are answered by, and whether that is
// what is stored.
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
