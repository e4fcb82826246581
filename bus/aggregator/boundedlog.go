package aggregator

import (
	"log/slog"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/logevery"
	"github.com/hookfabric/hookfabric/schema"
)

// logEvery is the interval in which the lines of one kind are bounded.
const logEvery = 10 * time.Second

// Stores whose outages are logged.
const (
	queueStore   = "the queue of messages for agents"
	historyStore = "the store of conversations"
)

// boundedLog writes the lines that clients can cause any number of. Metrics count all of them.
type boundedLog struct {
	log     *slog.Logger
	few     *logevery.Limiter // 10 of each kind in logEvery
	one     *logevery.Limiter // one of each kind in logEvery
	outages *logevery.Limiter // one until the outage is over
}

func newBoundedLog(log *slog.Logger) *boundedLog {
	return &boundedLog{
		log: log, few: logevery.New(logevery.Rate{Lines: 10, Every: logEvery}, logevery.Rate{}),
		one:     logevery.New(logevery.Rate{Lines: 1, Every: logEvery}, logevery.Rate{}),
		outages: logevery.New(logevery.Rate{Lines: 1}, logevery.Rate{}),
	}
}

// failure is a kind of failed hooks. A configuration bounds how many kinds there are.
type failure struct {
	hook    string
	outcome schema.OutcomeKind
	decided schema.Decision
}

// hookFailed logs a hook that gave no answer.
func (l *boundedLog) hookFailed(r *schema.Routing, x *schema.ExecutedHook) {
	if more, ok := l.few.Allow(failure{x.Hook, x.Outcome, x.Decision}, time.Now()); ok {
		bus.InTrace(l.log, r.Trace).Warn("hook failed", "hook", x.Hook, "outcome", x.Outcome, "decided", x.Decision,
			"event", r.Event, "event_id", r.ID, "agent", r.Agent, "error", x.Error, "more_before", more)
	}
}

// malformed logs an event that cannot be judged as it is.
func (l *boundedLog) malformed(r *schema.Routing, subject string, err error) {
	if more, ok := l.few.Allow("malformed", time.Now()); ok {
		bus.InTrace(l.log, r.Trace).Warn("malformed event", "agent", r.Agent, "event", r.Event, "subject", subject, "error", err, "more_before", more)
	}
}

// maxLoggedReply bounds the part of a reply subject that is logged. Clients choose it.
const maxLoggedReply = 200

// unanswerable logs a request whose reply subject is not an inbox ([bus.IsInbox]). The broker does
// not answer it, because the answer could be a request in the name of another client.
func (l *boundedLog) unanswerable(subject, reply string) {
	if reply == "" {
		return // the message was only published: no client waits
	}
	if more, ok := l.one.Allow("unanswerable", time.Now()); ok {
		l.log.Warn("cannot answer a request, because its reply subject is not an inbox; give its client an inbox prefix such as _INBOX or _INBOX_me",
			"subject", subject, "reply", reply[:min(len(reply), maxLoggedReply)], "more_before", more)
	}
}

// shed logs an event that waited too long.
func (l *boundedLog) shed(cause string) {
	if more, ok := l.one.Allow("shed", time.Now()); ok {
		l.log.Warn("events wait too long to run their hooks, and the failure policies decide; add brokers or workers",
			"events", more+1, "last_cause", cause)
	}
}

// lost logs that events were dropped.
func (l *boundedLog) lost() {
	if more, ok := l.one.Allow("lost", time.Now()); ok {
		l.log.Error("events were lost because more arrived than can wait; add brokers, or look for agents in a loop", "more_before", more)
	}
}

// unreachable logs that an outage of a store began, once until it is over.
func (l *boundedLog) unreachable(store string, err error) {
	if _, ok := l.outages.Allow(store, time.Now()); ok {
		l.log.Warn(store+" cannot be reached; calls continue without", "error", err)
	}
}

// reachable logs that the outage of a store is over, if there was one.
func (l *boundedLog) reachable(store string) {
	if l.outages.Reset(store) {
		l.log.Info(store + " can be reached again")
	}
}
