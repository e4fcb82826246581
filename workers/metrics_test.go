package workers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestMetricsOfAWorker(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(newWorker(library{"yes": allows}, config(hook("yes"), hook("missing")), capacity(3)))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, f := range families {
		got[f.GetName()] = f.GetMetric()[0].GetGauge().GetValue()
	}
	want := map[string]float64{
		"hookfabric_worker_capacity": 3, "hookfabric_worker_config_version": 1,
		"hookfabric_worker_in_flight": 0, "hookfabric_worker_load_errors": 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
