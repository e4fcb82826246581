package workers

import "github.com/prometheus/client_golang/prometheus"

var (
	inFlightDesc = prometheus.NewDesc("hookfabric_worker_in_flight", "Batches under way in this worker.", nil, nil)
	capacityDesc = prometheus.NewDesc("hookfabric_worker_capacity", "Batches that this worker runs at once.", nil, nil)
	versionDesc  = prometheus.NewDesc("hookfabric_worker_config_version", "The active configuration, as this worker knows it; 0: none.", nil, nil)
	failedDesc   = prometheus.NewDesc("hookfabric_worker_load_errors", "Handlers of that configuration that can not be loaded.", nil, nil)
)

var _ prometheus.Collector = (*Worker)(nil)

// Describe names the worker's metrics.
func (w *Worker) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{inFlightDesc, capacityDesc, versionDesc, failedDesc} {
		ch <- d
	}
}

// Collect reads the worker's metrics.
func (w *Worker) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	gauge(inFlightDesc, float64(len(w.slots)))
	gauge(capacityDesc, float64(w.opt.Capacity))
	gauge(versionDesc, float64(w.Version()))
	failed := 0
	if v := (*w.versions.Load())[w.Version()]; v != nil {
		failed = len(v.loadErrors())
	}
	gauge(failedDesc, float64(failed))
}

// Version is the active configuration, as the worker knows it; 0: none.
func (w *Worker) Version() uint64 { return w.active.Load() }
