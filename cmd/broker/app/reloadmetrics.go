package app

import "github.com/prometheus/client_golang/prometheus"

// A reloadResult is the result of a reload, a label of metrics.
type reloadResult string

const (
	reloadOK        reloadResult = "ok"
	reloadUnchanged reloadResult = "unchanged"
	reloadBadFile   reloadResult = "bad_file"
	reloadRefused   reloadResult = "refused"
	reloadFailed    reloadResult = "failed"
)

// reloadMetrics report whether the content of the file is active.
type reloadMetrics struct {
	reloads    *prometheus.CounterVec // result
	successful prometheus.Gauge
	timestamp  prometheus.Gauge
}

// newReloadMetrics counts the start of the broker as a success, because a faulty file prevents it.
func newReloadMetrics(reg prometheus.Registerer) *reloadMetrics {
	m := &reloadMetrics{
		reloads: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "hookfabric", Name: "config_reloads_total",
			Help: "Reloads of the configuration file, by result."}, []string{"result"}),
		successful: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "hookfabric", Name: "config_reload_successful",
			Help: "1 if the last reload of the configuration file succeeded, else 0."}),
		timestamp: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "hookfabric", Name: "config_reload_timestamp_seconds",
			Help: "Unix time of the last successful reload of the configuration file."}),
	}
	reg.MustRegister(m.reloads, m.successful, m.timestamp)
	for _, r := range []reloadResult{reloadOK, reloadUnchanged, reloadBadFile, reloadRefused, reloadFailed} {
		m.reloads.WithLabelValues(string(r))
	}
	m.good()
	return m
}

func (m *reloadMetrics) good() {
	m.successful.Set(1)
	m.timestamp.SetToCurrentTime()
}

func (m *reloadMetrics) count(r reloadResult) {
	m.reloads.WithLabelValues(string(r)).Inc()
	if r == reloadOK || r == reloadUnchanged {
		m.good()
		return
	}
	m.successful.Set(0)
}
