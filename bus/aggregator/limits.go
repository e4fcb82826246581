package aggregator

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/bus/aggregator/ratelimit"
	"github.com/hookfabric/hookfabric/schema"
)

// One runaway agent must not use the resources of the others. A broker may therefore bound how many
// events per second it judges for one agent, and how many of its calls are under way. An event over
// a limit is answered as if there were no time for it, which is cheap. But it is refused if any
// hook would have judged it: an agent gets past no hook by sending many events. Control requests
// are bounded too.
//
// Each broker counts the requests that it receives itself.

// The limits that an agent may exceed, as labels in metrics, records and the status.
const (
	limitRate     = "rate"     // its events a second
	limitCalls    = "calls"    // its calls under way
	limitBytes    = "bytes"    // the bytes of its large events under way
	limitRequests = "requests" // its control requests
	limitAnswers  = "answers"  // its answers that wait
	limitHistory  = "history"  // its conversations
	limitUnjudged = "unjudged" // its record of calls that nothing judged
	limitMessages = "messages" // all that it sends to the server
	limitReserve  = "reserve"  // the room that all agents have together
)

func limitNames() []string {
	return []string{limitRate, limitCalls, limitBytes, limitRequests, limitAnswers, limitHistory, limitUnjudged, limitMessages, limitReserve}
}

// The kinds of clients and requests. Each kind is counted apart, so that none uses the share of
// another.
const (
	kindEvents   byte = iota // an agent's events
	kindOwn                  // the agent's control requests
	kindAbout                // control requests of others about the agent
	kindProducer             // requests of a producer about no particular agent
	kindInbox                // requests of the client that reads an inbox
)

const (
	// requestShare is how many control requests an agent may send for each event: long texts and
	// conversations are transferred in parts.
	requestShare = 10
	// requestCalls is which part of an agent's calls under way its control requests may be: brokers
	// have fewer of those under way.
	requestCalls = 2
	// requestBurst is how many seconds' worth of an agent's requests may come at once: a long text
	// is fetched in parts.
	requestBurst = 10
	// toldRate is how many refused requests per second of one client are answered. The others are
	// dropped.
	toldRate = 10
	// limitTold is how long the status lists an agent that was over a limit.
	limitTold = time.Minute
	// maxLimited bounds the agents over a limit that the aggregator tracks.
	maxLimited = 64
)

// limits hold the agents to their limits.
type limits struct {
	of       ratelimit.Limits
	events   *ratelimit.Table // nil: nothing is bounded
	requests *ratelimit.Table // of others about an agent; nil: nothing is bounded
	own      *ratelimit.Table // of agents; nil: nothing is bounded
	told     *ratelimit.Table // refused requests that are answered
	count    *prometheus.CounterVec
	log      *observe.Log
	// credentialName is [Options.CredentialName].
	credentialName func(key string) string

	large largeEvents

	mu sync.Mutex // guards the following fields
	// over has the agents that were over a limit recently. It is used only when a request or event
	// is refused.
	over map[overLimit]*overTimes
	// others counts the events without a record of agents that are no longer tracked, by limit.
	others map[string]*rests
	// recorded bounds how many events have a record in each recordEvery, which began then.
	recorded int
	second   time.Time
}

// overLimit names an agent and the limit that it is over.
type overLimit struct{ name, limit string }

// overTimes is how often an agent was over a limit, and when.
type overTimes struct {
	rests

	refused     int
	since, last time.Time
}

func newLimits(of ratelimit.Limits, count *prometheus.CounterVec, log *observe.Log) limits {
	requests := ratelimit.Limits{Rate: min(ratelimit.MaxRate, of.Rate*requestShare)}
	if of.Burst > 0 {
		requests.Burst = min(ratelimit.MaxBurst, of.Burst*requestShare)
	}
	if of.Calls > 0 {
		requests.Calls = max(1, of.Calls/requestCalls)
	}
	own := requests
	if of.Requests > 0 {
		own.Rate, own.Burst = of.Requests, int(min(ratelimit.MaxBurst, math.Ceil(of.Requests*requestBurst)))
	}
	return limits{
		of: of, events: ratelimit.NewTable(of), requests: ratelimit.NewTable(requests), own: ratelimit.NewTable(own), count: count, log: log,
		told:  ratelimit.NewTable(ratelimit.Limits{Rate: toldRate}),
		large: largeEvents{of: make(map[string]*agentLarge)}, over: make(map[overLimit]*overTimes), others: make(map[string]*rests),
	}
}

// A charge is an event's share of the limits of its agent.
type charge struct {
	key uint64 // of the agent, while the event counts as one of its calls
	// large is the event's share if it is a large event.
	large largeEvent
	over  string // the limit that it is over; empty: none
	wait  time.Duration
	paid  bool
}

// refuses reports whether the event is over a limit that an operator configured. The broker then
// refuses it. Otherwise the failure policies of its hooks answer it.
func (t *charge) refuses() bool { return t.over != "" && t.over != limitBytes }

// enter counts an event of an agent once, and reports whether it is within its limits. Until
// leave it counts as a call under way.
func (l *limits) enter(t *charge, agent string, now time.Time) bool {
	if t.paid {
		return t.over == ""
	}
	t.paid = true
	if l.events == nil {
		return true
	}
	key := l.events.Key(kindEvents, agent)
	switch v, wait := l.events.Enter(key, now); v {
	case ratelimit.OverRate:
		t.over, t.wait = limitRate, wait
	case ratelimit.OverCalls:
		t.over = limitCalls
	default:
		t.key = key
	}
	return t.over == ""
}

// leave reverses enter and the wait of a large event.
func (l *limits) leave(t *charge) {
	l.large.leave(&t.large)
	if t.key != 0 {
		l.events.Leave(t.key)
		t.key = 0
	}
}

// refusal returns the sentence for each hook that was not asked because the agent is over a limit.
func (l *limits) refusal(agent string, t charge) string {
	if t.over == limitBytes {
		return fmt.Sprintf("the agent %.80q has %d MiB of large events under way at one broker, and %d MiB wait, or this one has waited for half of its time; "+
			"send fewer events of at least %d KiB at a time", agent, mostLarge>>20, mostLargeWaiting>>20, minLarge>>10)
	}
	if t.over == limitCalls {
		return fmt.Sprintf("the agent %.80q has %d calls under way at one broker, which is its limit; try again when a call is answered, "+
			"or ask an operator to raise --agent-calls of the brokers", agent, l.of.Calls)
	}
	return fmt.Sprintf("the agent %.80q sends more than %v events per second, which is its limit at one broker; try again in %s, "+
		"or ask an operator to raise --agent-rate of the brokers", agent, l.of.Rate, roundUp(t.wait))
}

// roundUp rounds a wait up for a message, so that clients do not retry a little too early.
func roundUp(d time.Duration) time.Duration {
	unit := time.Millisecond
	if d > 10*time.Second {
		unit = time.Second
	}
	return (d + unit - 1).Truncate(unit)
}

// errDropped means that a request over a limit gets no answer, because many were refused just
// before.
var errDropped = errors.New("the request was dropped")

// request counts a control request by a name, and refuses one that is over its limits.
// Else done ends it.
func (l *limits) request(kind byte, name string) (done func(), err error) {
	table, now := l.requests, time.Now()
	if kind == kindOwn || kind == kindInbox {
		table = l.own
	}
	if table == nil {
		return func() {}, nil
	}
	key := table.Key(kind, name)
	v, wait := table.Enter(key, now)
	if v == ratelimit.Pass {
		return func() { table.Leave(key) }, nil
	}
	whose, label := map[byte]string{kindOwn: "of the agent", kindAbout: "about the agent", kindProducer: "of the producer", kindInbox: "with answers on the inbox"}[kind], name
	if known := l.holder(kind, name); known != "" {
		whose, label = "by the credentials of", known
	}
	l.refused(label, limitRequests)
	if !l.answers(kind, name, now) {
		return nil, errDropped
	}
	if v == ratelimit.OverCalls {
		return nil, unavailable(fmt.Sprintf("too many requests %s %.80q are under way at one broker; try again when a request is answered, "+
			"or raise --agent-calls of the brokers, which allows one request for each %d calls", whose, label, requestCalls))
	}
	if table == l.own && l.of.Requests > 0 {
		return nil, &schema.ControlError{Code: schema.CodeUnavailable, RetryAfter: schema.Duration(roundUp(wait)), Message: fmt.Sprintf(
			"there are more than %v requests per second %s %.80q, which is the limit of one broker; try again in %s, or ask an operator to raise --agent-requests of the brokers",
			l.of.Requests, whose, label, roundUp(wait))}
	}
	return nil, &schema.ControlError{Code: schema.CodeUnavailable, RetryAfter: schema.Duration(roundUp(wait)), Message: fmt.Sprintf(
		"there are more than %v requests per second %s %.80q, which is the limit of one broker; try again in %s, or raise --agent-rate of the brokers, which allows %d requests for each event",
		math.Min(ratelimit.MaxRate, l.of.Rate*requestShare), whose, label, roundUp(wait), requestShare)}
}

// holder returns the name of the credentials whose inbox counts requests; empty: it is unknown, or
// something else counts them.
func (l *limits) holder(kind byte, name string) string {
	key := bus.InboxKey(name)
	if kind != kindInbox || key == "" || l.credentialName == nil {
		return ""
	}
	return l.credentialName(key)
}

// answers reports whether a refused request is answered.
func (l *limits) answers(kind byte, name string, now time.Time) bool {
	key := l.told.Key(kind, name)
	v, _ := l.told.Enter(key, now)
	if v == ratelimit.Pass {
		l.told.Leave(key)
	}
	return v == ratelimit.Pass
}

// requestOf is request for a verb on the subject of an agent. A request about no particular agent
// comes from an operator and has no limit here. A request that every agent's side may send counts
// for the inbox of its reply.
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

// refused counts an event or request that is refused because its sender is over a limit, and logs
// it at most once in a while. It reports whether an event has a record.
func (l *limits) refused(name, limit string) (recorded bool) {
	l.count.WithLabelValues(limit).Inc()
	now := time.Now()
	l.mu.Lock()
	o := l.times(overLimit{name, limit}, now)
	o.refused++
	o.last = now
	if limit == limitRate || limit == limitCalls || limit == limitBytes { // these limits are about events, which have records
		recorded = l.first(&o.rests, now)
	}
	n := o.refused
	l.mu.Unlock()
	l.log.OverLimit(name, limit, n)
	return recorded
}

// Flooded counts that the server disconnected an agent that sent more than the server accepts from
// one client.
func (a *Aggregator) Flooded(agent string) { a.intake.limits.refused(agent, limitMessages) }

// times returns how often a client was over a limit. If the table is full, times removes the entry
// that is idle for the longest. The caller holds the lock.
func (l *limits) times(who overLimit, now time.Time) *overTimes {
	if o := l.over[who]; o != nil {
		if now.Sub(o.last) > limitTold {
			o.since, o.refused = now, 0 // the earlier excess has ended
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

// list returns the agents over a limit in the last minute, the most frequent first.
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
