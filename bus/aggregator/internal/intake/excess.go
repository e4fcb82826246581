package intake

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
	"github.com/hookfabric/hookfabric/schema"
)

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
