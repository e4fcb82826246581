package intake

import (
	"errors"
	"fmt"
	"math"
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
