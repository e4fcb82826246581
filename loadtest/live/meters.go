package live

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// prefix begins the name of each metric.
const prefix = "hookfabric_loadtest_"

// meters are what Prometheus reads.
type meters struct {
	registry                      *prometheus.Registry
	calls, wrong, faults          *prometheus.CounterVec
	offered, inFlight, progress   prometheus.Gauge
	times                         *times
	kinds, outcomes, checks, acts words
}

func newMeters(scenario string, began time.Time) *meters {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: prefix + name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + name, Help: help}, labels)
	}
	m := &meters{
		registry: prometheus.NewRegistry(),
		calls:    counters("calls_total", "Finished calls.", "kind", "outcome"),
		wrong:    counters("wrong_total", "Wrong answers, by check.", "check"),
		faults:   counters("faults_total", "Faults that the run caused, by kind.", "kind"),
		offered:  gauge("offered_per_second", "Planned calls per second at this time."),
		inFlight: gauge("in_flight", "Calls that are due and not finished."),
		progress: gauge("progress_ratio", "Progress of the run, from 0 to 1."),
		times:    newTimes(),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: prefix + "run_info", Help: "The run.", ConstLabels: prometheus.Labels{"scenario": scenario, "go_version": runtime.Version()},
	})
	info.Set(1)
	start := gauge("run_start_time_seconds", "Start of the run, in Unix seconds.")
	start.Set(float64(began.UnixNano()) / 1e9)
	m.registry.MustRegister(m.calls, m.wrong, m.faults, m.offered, m.inFlight, m.progress, m.times, info, start)
	return m
}

// words bounds the values of a label.
type words struct {
	mu   sync.Mutex // guards seen
	seen map[string]bool
}

// bounded is the word, or "other" when there have been too many different ones.
func (w *words) bounded(word string) string {
	const most = 64
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.seen[word] {
		if len(w.seen) >= most {
			return "other"
		}
		if w.seen == nil {
			w.seen = map[string]bool{}
		}
		w.seen[word] = true
	}
	return word
}

// times are histograms into which many calls are counted at once, as they come
// from other processes already counted.
type times struct {
	about  *prometheus.Desc
	bounds []float64 // in seconds

	mu    sync.Mutex // guards kinds
	kinds map[string]*buckets
}

type buckets struct {
	counts []uint64 // one a bound, not added up
	count  uint64
	sum    float64
}

func newTimes() *times {
	return &times{
		about:  prometheus.NewDesc(prefix+"call_seconds", "Latency of calls, from their planned time.", []string{"kind"}, nil),
		bounds: prometheus.ExponentialBuckets(25e-6, 2, 20), // up to 13 s
		kinds:  map[string]*buckets{},
	}
}

func (t *times) add(kind string, d time.Duration, n uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.kinds[kind]
	if b == nil {
		b = &buckets{counts: make([]uint64, len(t.bounds))}
		t.kinds[kind] = b
	}
	b.count, b.sum = b.count+n, b.sum+d.Seconds()*float64(n)
	if i, _ := slices.BinarySearch(t.bounds, d.Seconds()); i < len(t.bounds) {
		b.counts[i] += n
	}
}

// Describe tells the registry of the histograms.
func (t *times) Describe(to chan<- *prometheus.Desc) { to <- t.about }

// Collect hands the histograms over.
func (t *times) Collect(to chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for kind, b := range t.kinds {
		upTo, below := uint64(0), map[float64]uint64{}
		for i, bound := range t.bounds {
			upTo += b.counts[i]
			below[bound] = upTo
		}
		to <- prometheus.MustNewConstHistogram(t.about, b.count, b.sum, below, kind)
	}
}
