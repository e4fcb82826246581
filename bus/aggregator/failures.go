package aggregator

import (
	"log/slog"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// eachOf is how many failures of a kind are logged one by one in an interval: what
// fails thousands of times in a second is no news each time.
const eachOf = 10

// failures logs hooks that gave no answer: the first few of a kind as they are, and how
// many more there were once per interval. Metrics count all of them.
type failures struct {
	log *slog.Logger

	mu    sync.Mutex // guards what follows
	kinds map[failure]*failed
	ended bool
}

// A failure is a kind of them. A configuration bounds how many kinds there are.
type failure struct {
	hook    string
	outcome schema.OutcomeKind
	decided schema.Decision
}

// failed is how often one came in an interval, and the last that was not logged.
type failed struct {
	times int
	last  string
}

// note logs a failure, or counts it.
func (f *failures) note(r *schema.Routing, x *schema.ExecutedHook) {
	if f.first(failure{x.Hook, x.Outcome, x.Decision}, x.Error) {
		bus.InTrace(f.log, r.Trace).Warn("hook failed", "hook", x.Hook, "outcome", x.Outcome, "decided", x.Decision,
			"event", r.Event, "event_id", r.ID, "agent", r.Agent, "error", x.Error)
	}
}

// first counts a failure and reports whether it is one of the first in an interval.
func (f *failures) first(kind failure, why string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.kinds) == 0 {
		f.kinds = make(map[failure]*failed)
		time.AfterFunc(logEvery, f.sum)
	}
	n := f.kinds[kind]
	if n == nil {
		n = new(failed)
		f.kinds[kind] = n
	}
	if n.times++; n.times > eachOf && !f.ended {
		n.last = why
		return false
	}
	return true
}

// sum logs how many more failures there were, and begins another interval.
func (f *failures) sum() {
	f.mu.Lock()
	all := f.kinds
	f.kinds = nil
	f.mu.Unlock()
	for kind, n := range all {
		if more := n.times - eachOf; more > 0 {
			f.log.Warn("hook failed many times", "hook", kind.hook, "outcome", kind.outcome, "decided", kind.decided,
				"more", more, "within", logEvery, "last_error", n.last)
		}
	}
}

// end logs what was not logged yet. What comes after is logged one by one.
func (f *failures) end() {
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.sum()
}
