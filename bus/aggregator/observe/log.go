package observe

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
	QueueStore   = "the queue of messages for agents"
	HistoryStore = "the store of conversations"
)

// A Log writes the lines that clients can cause any number of. Metrics count all of them.
type Log struct {
	*slog.Logger

	few     *logevery.Limiter // 10 of each kind in logEvery
	one     *logevery.Limiter // one of each kind in logEvery
	outages *logevery.Limiter // one until the outage is over
	limits  *logevery.Limiter // one of each agent and limit in a minute, and 10 of all in logEvery
}

// NewLog returns a Log that writes to log.
func NewLog(log *slog.Logger) *Log {
	return &Log{
		Logger: log, few: logevery.New(logevery.Rate{Lines: 10, Every: logEvery}, logevery.Rate{}),
		one:     logevery.New(logevery.Rate{Lines: 1, Every: logEvery}, logevery.Rate{}),
		outages: logevery.New(logevery.Rate{Lines: 1}, logevery.Rate{}),
		limits:  logevery.New(logevery.Rate{Lines: 1, Every: time.Minute}, logevery.Rate{Lines: 10, Every: logEvery}),
	}
}

// failure is a kind of failed hooks. A configuration bounds how many kinds there are.
type failure struct {
	hook    string
	outcome schema.OutcomeKind
	decided schema.Decision
}

// HookFailed logs a hook that gave no answer.
func (l *Log) HookFailed(r *schema.Routing, x *schema.ExecutedHook) {
	if more, ok := l.few.Allow(failure{x.Hook, x.Outcome, x.Decision}, time.Now()); ok {
		bus.InTrace(l.Logger, r.Trace).Warn("hook failed", "hook", x.Hook, "outcome", x.Outcome, "decided", x.Decision,
			"event", r.Event, "event_id", r.ID, "agent", r.Agent, "error", x.Error, "more_before", more)
	}
}

// Malformed logs an event that cannot be judged as it is.
func (l *Log) Malformed(r *schema.Routing, subject string, err error) {
	if more, ok := l.few.Allow("malformed", time.Now()); ok {
		bus.InTrace(l.Logger, r.Trace).Warn("malformed event", "agent", r.Agent, "event", r.Event, "subject", subject, "error", err, "more_before", more)
	}
}

// maxLoggedReply bounds the part of a reply subject that is logged. Clients choose it.
const maxLoggedReply = 200

// Unanswerable logs a request whose reply subject is not an inbox ([bus.IsInbox]). The broker does
// not answer it, because the answer could be a request in the name of another client.
func (l *Log) Unanswerable(subject, reply string) {
	if reply == "" {
		return // the message was only published: no client waits
	}
	if more, ok := l.one.Allow("unanswerable", time.Now()); ok {
		l.Logger.Warn("cannot answer a request, because its reply subject is not an inbox; give its client an inbox prefix such as _INBOX or _INBOX_me",
			"subject", subject, "reply", reply[:min(len(reply), maxLoggedReply)], "more_before", more)
	}
}

// Shed logs an event that waited too long.
func (l *Log) Shed(cause string) {
	if more, ok := l.one.Allow("shed", time.Now()); ok {
		l.Logger.Warn("events wait too long to run their hooks, and the failure policies decide; add brokers or workers",
			"events", more+1, "last_cause", cause)
	}
}

// OverLimit logs that the broker refuses what an agent sends above a limit.
func (l *Log) OverLimit(agent, limit string, refused int) {
	if _, ok := l.limits.Allow([2]string{agent, limit}, time.Now()); ok {
		l.Logger.Warn("an agent exceeds a limit, and the broker refuses the excess; look at what the agent does, or raise the limit",
			"agent", agent, "limit", limit, "refused", refused)
	}
}

// Lost logs that events were dropped.
func (l *Log) Lost() {
	if more, ok := l.one.Allow("lost", time.Now()); ok {
		l.Logger.Error("events were lost because more arrived than can wait; add brokers, or look for agents in a loop", "more_before", more)
	}
}

// Unreachable logs that an outage of a store began, once until it is over.
func (l *Log) Unreachable(store string, err error) {
	if _, ok := l.outages.Allow(store, time.Now()); ok {
		l.Logger.Warn(store+" cannot be reached; calls continue without", "error", err)
	}
}

// Reachable logs that the outage of a store is over, if there was one.
func (l *Log) Reachable(store string) {
	if l.outages.Reset(store) {
		l.Logger.Info(store + " can be reached again")
	}
}
