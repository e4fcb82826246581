package app

import "github.com/prometheus/client_golang/prometheus"

// realmGauge says whether who may use the fabric is what is stored. It is to be made when
// it is known whether there is an embedded server.
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

// realmUnreadable reports whether what was known before of who may use the embedded server
// counts, as what is stored cannot be read. With an existing deployment it is not its business.
func (b *Broker) realmUnreadable() bool { return b.server != nil && b.server.RealmUnreadable() }
