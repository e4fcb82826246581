package app

import "github.com/prometheus/client_golang/prometheus"

// realmGauge returns the metric realm_unreadable. Call it after the start of the embedded server.
func (b *Broker) realmGauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "hookfabric", Name: "realm_unreadable",
		Help: "1 while the stored credentials cannot be read and the broker uses those that it read last, else 0. Alert on this.",
	}, func() float64 {
		if b.realmUnreadable() {
			return 1
		}
		return 0
	})
}

// realmUnreadable reports whether the embedded server uses old permissions because it cannot read
// the stored ones. It is false with a NATS deployment.
func (b *Broker) realmUnreadable() bool { return b.server != nil && b.server.RealmUnreadable() }
