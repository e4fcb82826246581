package app

import "github.com/prometheus/client_golang/prometheus"

// realmGauge says whether who may use the fabric is what is stored. It is to be made when
// it is known whether there is an embedded server.
func (b *Broker) realmGauge() prometheus.Collector {
	server := b.server
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "hookfabric", Name: "realm_unreadable",
		Help: "1 while what is stored of who may use the fabric can not be read, so that what was known before counts, else 0. Alert on this.",
	}, func() float64 {
		if server != nil && server.RealmUnreadable() {
			return 1
		}
		return 0
	})
}
