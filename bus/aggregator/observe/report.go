// Package observe tells operators what an aggregator does: metrics, the feed of records, the log,
// and the counts of shadow hooks and of stored state.
//
// All methods are safe for concurrent use.
//
// Only this module imports it.
package observe

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/dispatch"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// A Report has everything that an aggregator reports to operators.
type Report struct {
	Metrics *Metrics
	Log     *Log
	Feed    *Feed
	Ledger  *Ledger
	Shadows Shadows
}

// Verdict counts a verdict, logs the hooks that failed, and puts it on the feed.
func (r *Report) Verdict(t *Answered, v *schema.Verdict) {
	r.Shed(t, v)
	for i := range v.ExecutedHooks {
		if x := &v.ExecutedHooks[i]; x.Outcome != schema.OK {
			r.Log.HookFailed(t.Routing, x)
		}
	}
}

// Shed is [Report.Verdict] for an event whose hooks did not run, so that their failures are not
// logged.
func (r *Report) Shed(t *Answered, v *schema.Verdict) {
	took := time.Since(t.Arrived)
	r.Metrics.Verdict(t, v, took)
	r.Ledger.Injected(t.Routing, v)
	if !t.Unrecorded {
		r.Feed.verdict(t, v, took)
	}
}

// Aside reports a hook's result that is not in a verdict: the hook ran at the same time as the one
// that ended the chain.
func (r *Report) Aside(to *schema.Routing, part *schema.Verdict) {
	for i := range part.ExecutedHooks {
		r.Metrics.executed(&part.ExecutedHooks[i])
	}
	r.Feed.aside(to, part)
}

// Shadowed reports the result of a shadow hook, and what it would have changed.
func (r *Report) Shadowed(to *schema.Routing, s *dispatch.Shadowed) {
	for i := range s.Part.ExecutedHooks {
		r.Metrics.executed(&s.Part.ExecutedHooks[i])
	}
	r.Metrics.shadowed(s)
	r.Shadows.Add(to.ID, s)
	r.Feed.shadowed(to, s)
}

// TooLate counts and logs an event that waited too long to be judged.
func (r *Report) TooLate(cause string) {
	r.Metrics.Shed.WithLabelValues(cause).Inc()
	r.Log.Shed(cause)
}

// Answered is an event that was answered.
type Answered struct {
	*schema.Routing

	Msg     *nats.Msg
	Arrived time.Time
	// Shed: no hook ran. Malformed: it could not be judged as it was.
	Shed, Malformed bool
	// Limited is the limit that the agent was over; empty: it was within all.
	Limited string
	// Unrecorded: it is one of many such events, of which only the number is recorded.
	Unrecorded bool
	// Wait is after how long the agent is within the limit; 0: it is not known.
	Wait time.Duration
}

// attempt returns how often the shim sent the event; 0 means once.
func (t *Answered) attempt() int {
	if n, err := strconv.Atoi(t.Msg.Header.Get(schema.HeaderAttempt)); err == nil && n > 1 && n <= bus.MaxAttempt {
		return n
	}
	return 0
}

// stopped reports whether the limit that the agent was over refused the call: no hook's
// failure was taken as no opinion then.
func (t *Answered) stopped(v *schema.Verdict) bool {
	return t.Limited != "" && t.Event.Terminal(v.Decision)
}

// expiredDepth bounds the items that wait to be put on the feed because they
// are gone.
const expiredDepth = 1024

// otherSource is how metrics call all sources that are not in their list.
const otherSource = "other"

// sourceLabels returns the sources that have a label of their own.
func sourceLabels() []string {
	return []string{schema.SourceHuman, schema.SourcePeer, schema.SourceSubagent, schema.SourceBackground,
		schema.SourceReminder, schema.SourceTimeout, otherSource}
}

// A Ledger counts what happens to stored messages and rounds. A broker makes it before it opens its
// stores, and the aggregator after them.
type Ledger struct {
	log     *slog.Logger
	expired chan *schema.Item // to be put on the feed

	delivered, ended        map[string]prometheus.Counter // by source
	redelivered, duplicates prometheus.Counter
	leases, conflicts       prometheus.Counter

	// Soft and Hard count rounds that were over their limits, Cut calls that went on without messages.
	Soft, Hard, Cut prometheus.Counter
}

// NewLedger makes a Ledger whose metrics reg takes; nil: they are only counted. A nil logger is
// slog's default.
func NewLedger(reg prometheus.Registerer, log *slog.Logger) *Ledger {
	if log == nil {
		log = slog.Default()
	}
	l := &Ledger{log: log, expired: make(chan *schema.Item, expiredDepth)}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "hookfabric", Name: name, Help: help}, labels)
		if reg != nil {
			reg.MustRegister(c)
		}
		return c
	}
	bySource := func(name, help string) map[string]prometheus.Counter {
		all, vec := make(map[string]prometheus.Counter), counter(name, help, "source")
		for _, s := range sourceLabels() {
			all[s] = vec.WithLabelValues(s)
		}
		return all
	}
	alone := func(name, help string) prometheus.Counter { return counter(name, help).WithLabelValues() }
	l.delivered = bySource("injections_delivered_total", "Messages that were delivered and acknowledged.")
	l.ended = bySource("injections_expired_total", "Messages for one agent that were removed after their TTL.")
	l.redelivered = alone("injections_redelivered_total", "Messages delivered again because no acknowledgement came in time.")
	l.duplicates = alone("injections_duplicates_total", "Repeats of messages that were already accepted.")
	l.leases = alone("lease_expirations_total", "Leases that ended without an acknowledgement.")
	l.conflicts = alone("state_conflicts_total", "Writes that lost a compare-and-set and were repeated.")
	l.Soft = alone("soft_timeouts_total", "Rounds whose agents received the warning that their time is over.")
	l.Hard = alone("hard_timeouts_total", "Calls denied because the grace period of a round was over.")
	l.Cut = alone("deliveries_cut_total", "Calls that continued without messages because the queue did not answer in time.")
	return l
}

// sourceLabel returns the label of a source.
func (l *Ledger) sourceLabel(source string) string {
	if l.delivered[source] == nil {
		return otherSource
	}
	return source
}

// Queue returns the functions by which a queue reports to the Ledger.
func (l *Ledger) Queue() queue.Watch {
	return queue.Watch{
		Duplicate:   func(string) { l.duplicates.Inc() },
		Delivered:   func(_ string, it *schema.Item) { l.delivered[l.sourceLabel(it.Source)].Inc() },
		Redelivered: func(string, *schema.Item) { l.redelivered.Inc() },
		LeaseExpired: func(agent, event string) {
			l.leases.Inc()
			l.log.Info("injections were not acknowledged in time; they are delivered again", "agent", agent, "event_id", event)
		},
		Expired:  l.end,
		Conflict: l.Conflict,
	}
}

// Conflict counts a write that lost a compare-and-set.
func (l *Ledger) Conflict() { l.conflicts.Inc() }

// end counts an item that waited too long. An item for several agents always expires, which is no
// failure. The feed is best effort.
func (l *Ledger) end(it *schema.Item) {
	level, what := slog.LevelInfo, "an item for several agents expired"
	if it.Scope.Agent != "" {
		l.ended[l.sourceLabel(it.Source)].Inc()
		level, what = slog.LevelWarn, "an item expired before it was delivered"
	}
	l.log.Log(context.Background(), level, what, "key", it.Key, "source", it.Source, "sequence", it.Sequence, "length", it.Length())
	select {
	case l.expired <- it:
	default:
	}
}

// Injected logs the messages of the queue that a verdict brings.
func (l *Ledger) Injected(r *schema.Routing, v *schema.Verdict) {
	for i := range v.Injections {
		in := &v.Injections[i]
		if in.Sequence == 0 {
			continue
		}
		bus.InTrace(l.log, r.Trace).Info("[INJECTION]", "agent", r.Agent, "source", in.Source, "strategy", in.Strategy, "length", in.Length(),
			"sequence", in.Sequence, "event_id", r.ID)
		l.log.Debug("[INJECTION] content", "sequence", in.Sequence, "content", in.Content)
	}
}

// gauges are metrics that are read when they are collected.
type gauges struct {
	queue Stats

	pending, oldest, lag, remembered *prometheus.Desc
}

// Stats are the statistics of a [queue.Queue].
type Stats interface {
	Stats() queue.Stats
}

// Gauges returns the metrics of a queue.
func Gauges(q Stats) prometheus.Collector {
	return &gauges{
		queue:   q,
		pending: prometheus.NewDesc("hookfabric_injections_pending", "Messages that wait for agents, by source.", []string{"source"}, nil),
		oldest:  prometheus.NewDesc("hookfabric_injections_oldest_pending_seconds", "Age in seconds of the oldest message that waits for one agent.", nil, nil),
		lag:     prometheus.NewDesc("hookfabric_mirror_lag_seconds", "Seconds for which this broker's copy of the queue has been behind, 0 if it is current.", nil, nil),
		remembered: prometheus.NewDesc("hookfabric_injections_remembered_seconds",
			"Seconds for which the broker recognises a repeat of a numbered message as a duplicate; later repeats are too old.", nil, nil),
	}
}

// Describe names the metrics.
func (g *gauges) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(g, to) }

// Collect looks them up.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	st := g.queue.Stats()
	sums := SumBySource(st.Pending)
	for _, s := range sourceLabels() {
		to <- prometheus.MustNewConstMetric(g.pending, prometheus.GaugeValue, float64(sums[s]), s)
	}
	to <- prometheus.MustNewConstMetric(g.oldest, prometheus.GaugeValue, st.Oldest.Seconds())
	to <- prometheus.MustNewConstMetric(g.lag, prometheus.GaugeValue, st.Lag.Seconds())
	to <- prometheus.MustNewConstMetric(g.remembered, prometheus.GaugeValue, st.Remembered.Seconds())
}

// SumBySource adds up counts by source. All sources that metrics do not tell apart are one.
func SumBySource(bySource map[string]int) map[string]int {
	sums, known := make(map[string]int), make(map[string]bool)
	for _, s := range sourceLabels() {
		known[s] = true
	}
	for source, n := range bySource {
		if !known[source] {
			source = otherSource
		}
		sums[source] += n
	}
	return sums
}
