package report

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// LiveOptions say where a run is shown.
type LiveOptions struct {
	// Scenario is the name of the run.
	Scenario string
	// Progress receives lines of progress; nil: none.
	Progress io.Writer
	// Metrics is the address of the metrics, HOST:PORT on the loopback interface; empty: none.
	Metrics string
}

// A Live shows the progress of a run: as lines, and as metrics for Prometheus if it has an
// address. A scenario reports to it. A nil Live shows nothing, and one without an address
// counts nothing. Its methods are safe for many goroutines.
//
// The metrics have names hookfabric_loadtest_… and a registry of their own. Values of labels
// are words of the program.
type Live struct {
	to     io.Writer
	meters *meters // nil: no metrics
	server *http.Server
	addr   string
	served chan error

	mu   sync.Mutex // guards what follows, and the lines
	told time.Time  // when [Live.Progress] last wrote
}

// meters are the metrics.
type meters struct {
	calls, wrong, faults        *prometheus.CounterVec
	offered, inFlight, progress prometheus.Gauge
	times                       *prometheus.HistogramVec
}

func newMeters(registry *prometheus.Registry, scenario string) *meters {
	const prefix = "hookfabric_loadtest_"
	gauge := func(name, help string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: help})
		registry.MustRegister(g)
		return g
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
		registry.MustRegister(c)
		return c
	}
	m := &meters{
		calls:    counters("calls_total", "Finished calls.", "kind", "outcome"),
		wrong:    counters("wrong_total", "Wrong answers, by check.", "check"),
		faults:   counters("faults_total", "Faults that the run caused, by kind.", "kind"),
		offered:  gauge("offered_per_second", "Planned calls per second at this time."),
		inFlight: gauge("in_flight", "Calls that are due and not finished."),
		progress: gauge("progress_ratio", "Progress of the run, from 0 to 1."),
		times: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: prefix + "call_seconds", Help: "Latency of calls, from their planned time.", Buckets: prometheus.ExponentialBuckets(25e-6, 2, 20), // up to 13 s
		}, []string{"kind"}),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: prefix + "run_info", Help: "The run.", ConstLabels: prometheus.Labels{"scenario": scenario, "go_version": runtime.Version()},
	})
	registry.MustRegister(m.times, info)
	info.Set(1)
	gauge("run_start_time_seconds", "Start of the run, in Unix seconds.").SetToCurrentTime()
	return m
}

// ErrAddress is returned for an address that other machines can reach.
var ErrAddress = errors.New("--metrics serves only this machine")

// StartLive starts to show a run. The caller closes it.
func StartLive(o LiveOptions) (*Live, error) {
	r := &Live{to: o.Progress}
	if o.Progress == nil {
		r.to = io.Discard
	}
	if o.Metrics == "" {
		return r, nil
	}
	if err := Loopback(o.Metrics); err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", o.Metrics)
	if err != nil {
		return nil, fmt.Errorf("listening for readers of the metrics: %w; name another port, or 0 for a free one", err)
	}
	registry := prometheus.NewRegistry()
	r.meters = newMeters(registry, o.Scenario)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	r.addr, r.served = ln.Addr().String(), make(chan error, 1)
	go func() { r.served <- r.server.Serve(ln) }()
	return r, nil
}

// Loopback returns an error for an address that other machines can reach.
func Loopback(addr string) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%w; write HOST:PORT instead of %q", ErrAddress, addr)
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%w, but other machines can reach %s; use 127.0.0.1", ErrAddress, addr)
}

// Addr returns the address of the metrics; empty: none.
func (r *Live) Addr() string {
	if r == nil {
		return ""
	}
	return r.addr
}

// Close stops serving metrics.
func (r *Live) Close() error {
	if r == nil || r.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := r.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = r.server.Close()
	}
	if served := <-r.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	if err != nil {
		return fmt.Errorf("closing the metrics: %w", err)
	}
	return nil
}

// count calls do with the metrics, if there are any.
func (r *Live) count(do func(m *meters)) {
	if r != nil && r.meters != nil {
		do(r.meters)
	}
}

// Calls counts n calls of a kind that ended with an outcome.
func (r *Live) Calls(kind, outcome string, n int64) {
	r.count(func(m *meters) {
		if n > 0 {
			m.calls.WithLabelValues(kind, outcome).Add(float64(n))
		}
	})
}

// A Distribution is many durations: Each calls count with each one and its number.
type Distribution interface {
	Each(count func(d time.Duration, n int64))
}

// Times counts the durations of many calls of a kind.
func (r *Live) Times(kind string, all Distribution) {
	r.count(func(m *meters) {
		times := m.times.WithLabelValues(kind)
		all.Each(func(d time.Duration, n int64) {
			for range n {
				times.Observe(d.Seconds())
			}
		})
	})
}

// Offered sets the number of planned calls per second.
func (r *Live) Offered(perSecond float64) { r.count(func(m *meters) { m.offered.Set(perSecond) }) }

// InFlight sets the number of calls that are due and not finished.
func (r *Live) InFlight(n int64) { r.count(func(m *meters) { m.inFlight.Set(float64(n)) }) }

// Wrong counts n answers that failed a check.
func (r *Live) Wrong(check string, n int64) {
	r.count(func(m *meters) { m.wrong.WithLabelValues(check).Add(float64(max(n, 0))) })
}

// Fault counts a fault that the run caused.
func (r *Live) Fault(kind string) { r.count(func(m *meters) { m.faults.WithLabelValues(kind).Inc() }) }

// Over sets the progress, from 0 to 1.
func (r *Live) Over(share float64) {
	r.count(func(m *meters) { m.progress.Set(min(max(share, 0), 1)) })
}

// Progress sets the progress, and writes a line at most every five seconds.
func (r *Live) Progress(share float64, words string) {
	const every, long = 5 * time.Second, 20
	r.Over(share)
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.told) >= every {
		r.told = now
		share = min(max(share, 0), 1)
		full := int(share * long)
		fmt.Fprintf(r.to, "[%s%s] %3.0f %% %s\n", strings.Repeat("=", full), strings.Repeat(" ", long-full), 100*share, words)
	}
}

// Write writes whole lines of progress. Errors of the destination are ignored.
func (r *Live) Write(text []byte) (int, error) {
	if r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		_, _ = r.to.Write(text)
	}
	return len(text), nil
}
