package aggregator

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/schema"
)

// Whom freezes are about, as the gauge tells it.
const (
	frozenAll    = "all"    // everybody: 1 or 0
	frozenAgents = "agents" // some agents: how many freezes stand
)

// When a call was refused because of a freeze.
const (
	frozenAsked    = "asked"
	frozenUnderWay = "under_way"
)

// startFrozen makes the series about freezes, all at zero.
func (m *metrics) startFrozen() {
	m.frozen = prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "hookfabric", Name: "frozen",
		Help: "Active freezes, by scope: of all agents (1 or 0), or of some (their number)."}, []string{"scope"})
	for _, when := range []string{frozenAsked, frozenUnderWay} {
		m.refusals.WithLabelValues(when)
	}
	m.froze(nil)
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

// froze shows how many freezes stand.
func (m *metrics) froze(all []schema.Freeze) {
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

// refusedFrozen counts a call that a freeze refused.
func (m *metrics) refusedFrozen(when string) { m.refusals.WithLabelValues(when).Inc() }
