package intake

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
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
	LimitAnswers  = "answers"  // its answers that wait
	LimitHistory  = "history"  // its conversations
	LimitUnjudged = "unjudged" // its record of calls that nothing judged
	LimitMessages = "messages" // all that it sends to the server
	LimitReserve  = "reserve"  // the room that all agents have together
)

// LimitNames returns all of them.
func LimitNames() []string {
	return []string{limitRate, limitCalls, limitBytes, limitRequests, LimitAnswers, LimitHistory, LimitUnjudged, LimitMessages, LimitReserve}
}

// A Kind is a kind of clients and requests. Each is counted apart, so that none uses the share of
// another.
type Kind byte

// The kinds.
const (
	kindEvents Kind = iota // an agent's events
	Own                    // the agent's control requests
	About                  // control requests of others about the agent
	Producer               // requests of a producer about no particular agent
	Inbox                  // requests of the client that reads an inbox
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
	// answeredRate is how many refused requests per second of one client are answered. The others are
	// dropped.
	answeredRate = 10
)

// Limits hold the agents to their limits.
type Limits struct {
	opt      LimitOptions
	of       ratelimit.Limits
	events   *ratelimit.Table // nil: nothing is bounded
	requests *ratelimit.Table // of others about an agent; nil: nothing is bounded
	own      *ratelimit.Table // of agents; nil: nothing is bounded
	answered *ratelimit.Table // refused requests that are answered
	large    largeEvents

	excesses
}

// LimitOptions are the parameters of [NewLimits].
type LimitOptions struct {
	PerAgent ratelimit.Limits
	Count    *prometheus.CounterVec // limit
	Log      *observe.Log
	// CredentialName returns the name of the credentials with a public key; nil: no name is known.
	CredentialName func(key string) string
}

// NewLimits makes Limits.
func NewLimits(opt LimitOptions) *Limits {
	of := opt.PerAgent
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
	return &Limits{
		opt: opt, of: of, events: ratelimit.NewTable(of), requests: ratelimit.NewTable(requests), own: ratelimit.NewTable(own),
		answered: ratelimit.NewTable(ratelimit.Limits{Rate: answeredRate}),
		large:    largeEvents{of: make(map[string]*agentLarge)}, excesses: excesses{count: opt.Count, log: opt.Log, of: make(map[overLimit]*excess)},
	}
}

// A Charge is an event's share of the limits of its agent.
type Charge struct {
	key uint64 // of the agent, while the event counts as one of its calls
	// large is the event's share if it is a large event.
	large largeEvent
	Over  string // the limit that it is over; empty: none
	wait  time.Duration
	paid  bool
}

// Refuses reports whether the event is over a limit that an operator configured. The broker then
// refuses it. Otherwise the failure policies of its hooks answer it.
func (t *Charge) Refuses() bool { return t.Over != "" && t.Over != limitBytes }

// Wait returns after how long the agent is within its rate; 0: it is not known.
func (t *Charge) Wait() time.Duration { return roundUp(t.wait) }

// enter counts an event of an agent once, and reports whether it is within its limits. Until
// leave it counts as a call under way.
func (l *Limits) enter(t *Charge, agent string, now time.Time) bool {
	if t.paid {
		return t.Over == ""
	}
	t.paid = true
	if l.events == nil {
		return true
	}
	key := l.events.Key(byte(kindEvents), agent)
	switch v, wait := l.events.Enter(key, now); v {
	case ratelimit.OverRate:
		t.Over, t.wait = limitRate, wait
	case ratelimit.OverCalls:
		t.Over = limitCalls
	default:
		t.key = key
	}
	return t.Over == ""
}

// leave reverses enter and the wait of a large event.
func (l *Limits) leave(t *Charge) {
	l.large.leave(&t.large)
	if t.key != 0 {
		l.events.Leave(t.key)
		t.key = 0
	}
}

// Refusal returns the sentence for each hook that was not asked because the agent is over a limit.
func (l *Limits) Refusal(agent string, t *Charge) string {
	if t.Over == limitBytes {
		return fmt.Sprintf("the agent %.80q has %d MiB of large events under way at one broker, and %d MiB wait, or this one has waited for half of its time; "+
			"send fewer events of at least %d KiB at a time", agent, mostLarge>>20, mostLargeWaiting>>20, minLarge>>10)
	}
	if t.Over == limitCalls {
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

// ErrDropped means that a request over a limit gets no answer, because many were refused just
// before.
var ErrDropped = errors.New("the request was dropped")

// Request counts a control request by a name, and refuses one that is over its limits. Else done
// ends it.
func (l *Limits) Request(kind Kind, name string) (done func(), err error) {
	table, now := l.requests, time.Now()
	if kind == Own || kind == Inbox {
		table = l.own
	}
	if table == nil {
		return func() {}, nil
	}
	key := table.Key(byte(kind), name)
	v, wait := table.Enter(key, now)
	if v == ratelimit.Pass {
		return func() { table.Leave(key) }, nil
	}
	whose, label := map[Kind]string{Own: "of the agent", About: "about the agent", Producer: "of the producer", Inbox: "with answers on the inbox"}[kind], name
	if known := l.holder(kind, name); known != "" {
		whose, label = "by the credentials of", known
	}
	l.Refused(label, limitRequests)
	if !l.isAnswered(kind, name, now) {
		return nil, ErrDropped
	}
	refusal := &schema.ControlError{Code: schema.CodeUnavailable, RetryAfter: schema.Duration(roundUp(wait))}
	switch {
	case v == ratelimit.OverCalls:
		refusal.Message = fmt.Sprintf("too many requests %s %.80q are under way at one broker; try again when a request is answered, "+
			"or raise --agent-calls of the brokers, which allows one request for each %d calls", whose, label, requestCalls)
	case table == l.own && l.of.Requests > 0:
		refusal.Message = fmt.Sprintf("there are more than %v requests per second %s %.80q, which is the limit of one broker; try again in %s, or ask an operator to raise --agent-requests of the brokers",
			l.of.Requests, whose, label, roundUp(wait))
	default:
		refusal.Message = fmt.Sprintf("there are more than %v requests per second %s %.80q, which is the limit of one broker; try again in %s, or raise --agent-rate of the brokers, which allows %d requests for each event",
			math.Min(ratelimit.MaxRate, l.of.Rate*requestShare), whose, label, roundUp(wait), requestShare)
	}
	return nil, refusal
}

// holder returns the name of the credentials whose inbox counts requests; empty: it is unknown, or
// something else counts them.
func (l *Limits) holder(kind Kind, name string) string {
	key := bus.InboxKey(name)
	if kind != Inbox || key == "" || l.opt.CredentialName == nil {
		return ""
	}
	return l.opt.CredentialName(key)
}

// isAnswered reports whether a refused request is answered.
func (l *Limits) isAnswered(kind Kind, name string, now time.Time) bool {
	key := l.answered.Key(byte(kind), name)
	v, _ := l.answered.Enter(key, now)
	if v == ratelimit.Pass {
		l.answered.Leave(key)
	}
	return v == ratelimit.Pass
}

// An agent may be over a limit thousands of times a second. A record of each event would be
// unbounded work. Each second, one event per agent and limit therefore has a record, and one more
// record counts the others.

const (
	// listedFor is how long the status lists an agent that was over a limit.
	listedFor = time.Minute
	// maxLimited bounds the agents over a limit that the aggregator tracks.
	maxLimited = 64
	// recordEvery is how often an event of one agent over a limit has a record.
	recordEvery = time.Second
	// maxRecorded bounds the records of such events of all agents in that time.
	maxRecorded = maxLimited
)

// excesses has the agents that were over a limit recently. It is used only when a request or event
// is refused.
type excesses struct {
	count *prometheus.CounterVec // limit
	log   *observe.Log

	mu sync.Mutex // guards the following fields
	// of has the excesses that are tracked. One without a name is for agents that are not any more.
	of map[overLimit]*excess
	// recorded bounds how many events have a record in each recordEvery, which began at second.
	recorded int
	second   time.Time
}

// overLimit names an agent and the limit that it is over.
type overLimit struct{ name, limit string }

// excess is how often an agent was over a limit, and when.
type excess struct {
	refused     int
	since, last time.Time
	recorded    time.Time // when an event last had a record
	more        int       // the events without a record since then
}

// Refused counts an event or request that is refused because its sender is over a limit, and logs
// it at most once in a while. It reports whether an event has a record.
func (x *excesses) Refused(name, limit string) (recorded bool) {
	x.count.WithLabelValues(limit).Inc()
	now := time.Now()
	x.mu.Lock()
	e := x.find(overLimit{name, limit}, now)
	e.refused++
	e.last = now
	if limit == limitRate || limit == limitCalls || limit == limitBytes { // these limits are about events, which have records
		if recorded = x.records(e, now); !recorded {
			e.more++
		}
	}
	n := e.refused
	x.mu.Unlock()
	x.log.OverLimit(name, limit, n)
	return recorded
}

// records reports whether the next event has a record. The caller holds the lock.
func (x *excesses) records(e *excess, now time.Time) bool {
	if now.Sub(x.second) >= recordEvery {
		x.second, x.recorded = now, 0
	}
	if e.more > 0 || now.Sub(e.recorded) < recordEvery {
		return false
	}
	e.recorded = now
	x.recorded++
	return x.recorded <= maxRecorded
}

// find returns an excess. If the table is full, it removes the one that is idle for the longest. The
// caller holds the lock.
func (x *excesses) find(who overLimit, now time.Time) *excess {
	if e := x.of[who]; e != nil {
		if now.Sub(e.last) > listedFor {
			e.since, e.refused = now, 0 // the earlier excess has ended
		}
		return e
	}
	var oldest overLimit
	tracked := 0
	for other, e := range x.of {
		if other.name == "" {
			continue
		}
		if tracked++; tracked == 1 || e.last.Before(x.of[oldest].last) {
			oldest = other
		}
	}
	if tracked >= maxLimited {
		x.forget(oldest, now)
	}
	e := &excess{since: now}
	x.of[who] = e
	return e
}

// forget removes an excess, and keeps the number of its events without a record. The caller holds
// the lock.
func (x *excesses) forget(who overLimit, now time.Time) {
	more := x.of[who].more
	delete(x.of, who)
	if more == 0 {
		return
	}
	others := overLimit{limit: who.limit}
	if x.of[others] == nil {
		x.of[others] = &excess{recorded: now}
	}
	x.of[others].more += more
}

// List returns the agents over a limit in the last minute, the most frequent first.
func (x *excesses) List() (all []schema.LimitedStatus) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	for who, e := range x.of {
		if silent := now.Sub(e.last); silent < listedFor {
			all = append(all, schema.LimitedStatus{
				Name: who.name, Limit: who.limit, Refused: e.refused,
				Since: schema.Duration(now.Sub(e.since)), Last: schema.Duration(silent),
			})
		}
	}
	slices.SortFunc(all, func(a, b schema.LimitedStatus) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Limit, b.Limit))
	})
	return all
}

// PublishRests publishes how many events over a limit have no record, if they are due for one, or all.
// Without a name it counts those of several agents.
func (x *excesses) PublishRests(feed *observe.Feed, all bool) {
	due := make(map[overLimit]int)
	now := time.Now()
	x.mu.Lock()
	for who, e := range x.of {
		if e.more > 0 && (all || now.Sub(e.recorded) >= recordEvery) {
			due[who] = e.more
			e.more = 0
		}
		if who.name == "" && e.more == 0 {
			delete(x.of, who)
		}
	}
	x.mu.Unlock()
	for who, more := range due {
		feed.Limited(who.name, who.limit, more)
	}
}

// allowedAgents bounds the agents that an allowance counts.
const allowedAgents = 10_000

// An Allowance counts what agents store through this broker, so that an agent that stores without
// end takes no room from the others.
type Allowance struct {
	Most int64         // bytes of one agent
	Per  time.Duration // within this time

	mu     sync.Mutex // guards agents
	agents map[string]usage
}

// usage is what one agent has stored since a time.
type usage struct {
	began time.Time
	bytes int64
}

// Take counts bytes for an agent, and reports whether the agent may store them.
func (l *Allowance) Take(agent string, bytes int64, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, known := l.agents[agent]
	if now.Sub(s.began) >= l.Per {
		s = usage{began: now}
	}
	if s.bytes += bytes; s.bytes > l.Most {
		return false
	}
	if l.agents == nil {
		l.agents = map[string]usage{}
	}
	if !known && len(l.agents) >= allowedAgents {
		l.evict(now)
	}
	l.agents[agent] = s
	return true
}

// Refund subtracts bytes that were counted for an agent but not stored.
func (l *Allowance) Refund(agent string, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, known := l.agents[agent]; known {
		s.bytes = max(0, s.bytes-bytes)
		l.agents[agent] = s
	}
}

// evict removes the agents whose time is over, or else the agent that has stored least. A client
// that uses many names once each therefore cannot displace other agents.
func (l *Allowance) evict(now time.Time) {
	maps.DeleteFunc(l.agents, func(_ string, s usage) bool { return now.Sub(s.began) >= l.Per })
	if len(l.agents) < allowedAgents {
		return
	}
	least := ""
	for agent, s := range l.agents {
		if least == "" || s.bytes < l.agents[least].bytes {
			least = agent
		}
	}
	delete(l.agents, least)
}
