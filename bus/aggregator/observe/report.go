// Package observe tells operators what an aggregator does: metrics, the feed of records, the log,
// and the counts of shadow hooks and of stored state.
//
// All methods are safe for concurrent use.
//
// Only this module imports it.
package observe

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/dispatch"
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
