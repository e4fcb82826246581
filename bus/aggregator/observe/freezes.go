package observe

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/schema"
)

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
