package workers

import "github.com/prometheus/client_golang/prometheus"

var (
	inFlightDesc = prometheus.NewDesc("hookfabric_worker_in_flight", "Batches that this worker runs now.", nil, nil)
	capacityDesc = prometheus.NewDesc("hookfabric_worker_capacity", "Batches that this worker can run at once.", nil, nil)
	versionDesc  = prometheus.NewDesc("hookfabric_worker_config_version", "The version of the active configuration in this worker; 0 if it has none.", nil, nil)
	failedDesc   = prometheus.NewDesc("hookfabric_worker_load_errors", "Handlers of that configuration that this worker cannot load.", nil, nil)
)

var _ prometheus.Collector = (*Worker)(nil)

// Describe implements [prometheus.Collector].
func (w *Worker) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{inFlightDesc, capacityDesc, versionDesc, failedDesc} {
		ch <- d
	}
}

// Collect implements [prometheus.Collector].
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

// Version returns the version of the active configuration; 0 means that the worker has none.
func (w *Worker) Version() uint64 { return w.active.Load() }
