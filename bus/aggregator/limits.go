package aggregator

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/fair"
	"github.com/hookfabric/hookfabric/schema"
)

// One agent that runs away must not take what the others need. So a broker may bound how
// many events a second it judges for one agent, and how many of its calls are under way.
// What is over that is answered like an event that there is no time for, which costs
// little, but refused if any hook would have judged it: an agent gets past no hook by
// asking for much. Requests about what is remembered are bounded likewise.
//
// Each broker counts what comes to it.

// What an agent is over, as it is counted and told.
const (
	limitRate     = "rate"     // its events a second
	limitCalls    = "calls"    // its calls under way
	limitRequests = "requests" // its control requests
)

func limitNames() []string { return []string{limitRate, limitCalls, limitRequests} }

// Who is counted under a name, so that nobody uses up what is another's.
const (
	kindEvents   byte = iota // an agent's events
	kindOwn                  // its control requests
	kindAbout                // those that others make about it
	kindProducer             // those of a producer about no agent in particular
	kindInbox                // those of whoever hears the answer on an inbox
)

const (
	// requestShare is how many control requests there may be for each event: the pieces
	// of a long text or conversation are fetched and kept one by one.
	requestShare = 10
	// requestCalls is which part of the calls under way of one agent control requests may
	// be: brokers have fewer of those under way.
	requestCalls = 2
	// limitTold is how long it is told of an agent that it was over a limit, and how
	// often it is logged.
	limitTold = time.Minute
	// maxLimited bounds the agents that are told of.
	maxLimited = 64
)

// limits keep agents to what they may take.
type limits struct {
	of       fair.Limits
	events   *fair.Table // nil: nothing is bounded
	requests *fair.Table // nil: nothing is bounded
	count    *prometheus.CounterVec
	log      *slog.Logger

	mu sync.Mutex // guards what follows
	// over are those that were over a limit lately. It is touched only when something is
	// refused.
	over map[overLimit]*overTimes
	// others are the events without a record of those that are told of no more, by limit.
	others map[string]*rests
	// recorded bounds how many events have a record in each recordEvery, which began then.
	recorded int
	second   time.Time
	// lines bounds how many agents are logged in each stretch of logEvery, which began then.
	lines int
	began time.Time
}

// overLimit is who is over what.
type overLimit struct{ name, limit string }

// overTimes is how often, and when.
type overTimes struct {
	rests

	refused             int
	since, last, logged time.Time
}

// maxLimitLines is how many agents are logged in one stretch of logEvery.
const maxLimitLines = 10

func newLimits(of fair.Limits, count *prometheus.CounterVec, log *slog.Logger) limits {
	requests := fair.Limits{Rate: min(fair.MaxRate, of.Rate*requestShare)}
	if of.Burst > 0 {
		requests.Burst = min(fair.MaxBurst, of.Burst*requestShare)
	}
	if of.Calls > 0 {
		requests.Calls = max(1, of.Calls/requestCalls)
	}
	return limits{
		of: of, events: fair.NewTable(of), requests: fair.NewTable(requests), count: count, log: log,
		over: make(map[overLimit]*overTimes), others: make(map[string]*rests),
	}
}

// A toll is what an event's agent was asked for it.
type toll struct {
	key  uint64 // of the agent, while the event counts as one of its calls
	over string // the limit that it is over; empty: none
	wait time.Duration
	paid bool
}

// enter counts an event of an agent, once, and reports whether it is within its limits.
// Until leave it counts as a call under way.
func (l *limits) enter(t *toll, agent string, now time.Time) bool {
	if l.events == nil || t.paid {
		return t.over == ""
	}
	t.paid = true
	key := l.events.Key(kindEvents, agent)
	switch v, wait := l.events.Enter(key, now); v {
	case fair.OverRate:
		t.over, t.wait = limitRate, wait
	case fair.OverCalls:
		t.over = limitCalls
	default:
		t.key = key
	}
	return t.over == ""
}

// leave ends what enter began.
func (l *limits) leave(t *toll) {
	if t.key != 0 {
		l.events.Leave(t.key)
	}
}

// refusal is what is said of each hook that was not asked because its event's agent is
// over a limit.
func (l *limits) refusal(agent string, t toll) string {
	if t.over == limitCalls {
		return fmt.Sprintf("the agent %.80q has %d calls under way at one broker, and may have no more; try it again when one is answered, "+
			"or have an operator raise --agent-calls of the brokers", agent, l.of.Calls)
	}
	return fmt.Sprintf("the agent %.80q asks about more than the %v events a second that one broker judges for it; try it again in %s, "+
		"or have an operator raise --agent-rate of the brokers", agent, l.of.Rate, roundUp(t.wait))
}

// roundUp is a wait as it is said: nobody asks again a little too early.
func roundUp(d time.Duration) time.Duration {
	unit := time.Millisecond
	if d > 10*time.Second {
		unit = time.Second
	}
	return (d + unit - 1).Truncate(unit)
}

// request counts a control request by a name, and refuses one that is over its limits.
// Else done ends it.
func (l *limits) request(kind byte, name string) (done func(), err error) {
	if l.requests == nil {
		return func() {}, nil
	}
	key := l.requests.Key(kind, name)
	v, wait := l.requests.Enter(key, time.Now())
	if v == fair.Pass {
		return func() { l.requests.Leave(key) }, nil
	}
	l.refused(name, limitRequests)
	whose := map[byte]string{kindOwn: "of the agent", kindAbout: "about the agent", kindProducer: "of the producer", kindInbox: "with answers on the inbox"}[kind]
	if v == fair.OverCalls {
		return nil, unavailable(fmt.Sprintf("too many requests %s %.80q are under way at one broker; try again when one is answered, "+
			"or raise --agent-calls of the brokers: there may be one for each %d calls", whose, name, requestCalls))
	}
	return nil, &schema.ControlError{Code: schema.CodeUnavailable, RetryAfter: schema.Duration(roundUp(wait)), Message: fmt.Sprintf(
		"there are more than %v requests a second %s %.80q, which is what one broker serves; try again in %s, or raise --agent-rate of the brokers: there may be %d for each event",
		math.Min(fair.MaxRate, l.of.Rate*requestShare), whose, name, roundUp(wait), requestShare)}
}

// requestOf is request for a verb on the subject of an agent. What is about no agent in
// particular is the operators' and is not bounded, but what they put into the queue; what
// anybody may ask is counted by who is answered.
func (l *limits) requestOf(v *verb, agent, reply string) (done func(), err error) {
	switch {
	case v.anybody:
		return l.request(kindInbox, bus.InboxName(reply))
	case agent == "":
		return func() {}, nil
	case v.others:
		return l.request(kindAbout, agent)
	}
	return l.request(kindOwn, agent)
}

// refused counts what was refused because somebody is over a limit, and logs that at most
// once in a while for each of them, and for so many. It reports whether an event has a record.
func (l *limits) refused(name, limit string) (recorded bool) {
	l.count.WithLabelValues(limit).Inc()
	now := time.Now()
	l.mu.Lock()
	o := l.times(overLimit{name, limit}, now)
	o.refused++
	o.last = now
	told := l.tells(o, now)
	if limit != limitRequests { // which have no records
		recorded = l.first(&o.rests, now)
	}
	n := o.refused
	l.mu.Unlock()
	if told {
		l.log.Warn("an agent asks for more than one may take: what is over that is not judged, or not served; look what it does, or raise the limit",
			"agent", name, "limit", limit, "refused", n)
	}
	return recorded
}

// times is how often somebody was over a limit. Where there is no room, whoever was not
// for the longest is forgotten. The lock is held.
func (l *limits) times(who overLimit, now time.Time) *overTimes {
	if o := l.over[who]; o != nil {
		if now.Sub(o.last) > limitTold {
			o.since, o.refused = now, 0 // it had come to an end
		}
		return o
	}
	if len(l.over) >= maxLimited {
		var oldest overLimit
		for other, o := range l.over {
			if l.over[oldest] == nil || o.last.Before(l.over[oldest].last) {
				oldest = other
			}
		}
		l.forgotten(oldest.limit, &l.over[oldest].rests, now)
		delete(l.over, oldest)
	}
	o := &overTimes{since: now}
	l.over[who] = o
	return o
}

// tells reports whether it is time to log that somebody is over a limit. The lock is held.
func (l *limits) tells(o *overTimes, now time.Time) bool {
	if !o.logged.IsZero() && now.Sub(o.logged) < limitTold {
		return false
	}
	if now.Sub(l.began) >= logEvery {
		l.began, l.lines = now, 0
	}
	l.lines++
	if l.lines > maxLimitLines {
		return false
	}
	o.logged = now
	return true
}

// list are those that were over a limit in the last minute, first who was most often.
func (l *limits) list() (all []schema.LimitedStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for who, o := range l.over {
		if silent := now.Sub(o.last); silent < limitTold {
			all = append(all, schema.LimitedStatus{
				Name: who.name, Limit: who.limit, Refused: o.refused,
				Since: schema.Duration(now.Sub(o.since)), Last: schema.Duration(silent),
			})
		}
	}
	slices.SortFunc(all, func(a, b schema.LimitedStatus) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Limit, b.Limit))
	})
	return all
}
