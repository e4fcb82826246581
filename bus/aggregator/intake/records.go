package intake

import (
	"time"

	"github.com/hookfabric/hookfabric/bus/aggregator/observe"
)

// An agent may be over a limit thousands of times a second. A record of each event would be
// unbounded work. Each second, one event per agent and limit therefore has a record, and one more
// record counts the others.

const (
	// recordEvery is how often an event of one agent over a limit has a record.
	recordEvery = time.Second
	// maxRecorded bounds the records of such events of all agents in that time.
	maxRecorded = maxLimited
)

// A rest counts the events of an agent over a limit that have no record. Without a name it counts
// those of several agents.
type rest struct {
	overLimit

	more int
}

// rests counts the events of an agent that have no record.
type rests struct {
	recorded time.Time // when an event last had a record
	more     int       // the events without a record since then
}

// first reports whether an event over a limit has a record, and counts the event if not. The caller
// holds the lock.
func (l *Limits) first(r *rests, now time.Time) bool {
	if now.Sub(l.second) >= recordEvery {
		l.second, l.recorded = now, 0
	}
	if r.more == 0 && now.Sub(r.recorded) >= recordEvery {
		r.recorded = now
		if l.recorded++; l.recorded <= maxRecorded {
			return true
		}
	}
	r.more++
	return false
}

// forgotten keeps the count of an agent that the aggregator stops tracking. The caller holds the
// lock.
func (l *Limits) forgotten(limit string, r *rests, now time.Time) {
	if r.more == 0 {
		return
	}
	if l.others[limit] == nil {
		l.others[limit] = &rests{recorded: now}
	}
	l.others[limit].more += r.more
}

// rests returns the counts that are due for a record, or all.
func (l *Limits) rests(now time.Time, all bool) (due []rest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	add := func(of overLimit, r *rests) {
		if r.more > 0 && (all || now.Sub(r.recorded) >= recordEvery) {
			due = append(due, rest{of, r.more})
			r.more = 0
		}
	}
	for of, o := range l.over {
		add(of, &o.rests)
	}
	for limit, r := range l.others {
		if add(overLimit{limit: limit}, r); r.more == 0 {
			delete(l.others, limit)
		}
	}
	return due
}

// TellRests publishes how many events over a limit have no record: those that are due for a record,
// or all.
func (l *Limits) TellRests(feed *observe.Feed, all bool) {
	for _, r := range l.rests(time.Now(), all) {
		feed.Limited(r.name, r.limit, r.more)
	}
}
