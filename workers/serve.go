package workers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
)

// drainTime is how long Serve waits for batches in progress.
const drainTime = 30 * time.Second

// Serve runs hooks written in Go for a pool until ctx ends. It then finishes the batches
// under way. The configuration names the hooks as builtins of that pool:
//
//   - {type: builtin, handler: my-check, pool: my-pool}
//
// Serve receives the configuration from the fabric. If a hook of the pool is not in
// handlers, it fails to load and the fabric denies its calls. Name the connection
// [ConnectionPrefix] and a unique id: the worker uses this id, and the fabric then notices a
// crash at once.
func Serve(ctx context.Context, nc *nats.Conn, pool string, handlers map[string]Handler) error {
	name, err := nameOf(nc)
	if err != nil {
		return err
	}
	w := New(Options{
		Name: name, Pools: []string{pool},
		Runners: map[schema.Kind]Runner{schema.Builtin: named(handlers)},
	})
	return Run(ctx, nc, w)
}

// nameOf returns the worker's id at the end of the connection's name, or a new one.
func nameOf(nc *nats.Conn) (string, error) {
	if name, ok := strings.CutPrefix(nc.Opts.Name, ConnectionPrefix); ok && name != "" {
		return name, nil
	}
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("making a worker id: %w", err)
	}
	return id.String(), nil
}

// Run serves w on the bus until ctx ends. It follows the fabric's configuration, and takes
// batches as soon as it has one. At the end it drains and closes w.
func Run(ctx context.Context, nc *nats.Conn, w *Worker) (err error) {
	var attached atomic.Pointer[Service]
	if w.opt.Parts == nil {
		w.parts.setSource(brokers{nc})
	}
	defer func() {
		draining, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		if svc := attached.Load(); svc != nil {
			err = errors.Join(err, svc.Drain(draining))
		}
		err = errors.Join(err, w.Close())
	}()
	watching, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	beat := func(*schema.Candidate) {
		if svc := attached.Load(); svc != nil {
			svc.beatOnce()
		}
	}
	err = state.Follow(watching, nc, w.opt.Logger, func(u state.Update) {
		w.Take(u, beat)
		if u.Active == nil || attached.Load() != nil {
			return
		}
		svc, err := Attach(nc, w)
		if err != nil {
			stop(err)
			return
		}
		attached.Store(svc)
	})
	if ctx.Err() != nil {
		return nil // the context ended, as intended
	}
	if cause := context.Cause(watching); cause != nil {
		return cause
	}
	return err
}

// named is the runner of a program's own handlers.
type named map[string]Handler

// Load finds a handler by name.
func (n named) Load(h schema.Hook, _ Site) (Handler, error) {
	if handler := n[h.Handler]; handler != nil {
		return handler, nil
	}
	return nil, fmt.Errorf("this program serves no handler %q", h.Handler)
}

// Close does nothing, because the handlers belong to the program.
func (n named) Close() error { return nil }

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
