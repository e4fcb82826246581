package aggregator

import "time"

// An agent may be over a limit thousands of times in a second, and a record of each would be
// work that it can have done without end. So of each agent and limit one event has a record
// in a second, and one more record says how many others there were.

const (
	// recordEvery is how often an event over a limit has a record, of one agent.
	recordEvery = time.Second
	// maxRecorded bounds such events in that time, whoever they are of.
	maxRecorded = maxLimited
)

// A rest are events of an agent over a limit that have no record; without a name they are of
// several.
type rest struct {
	overLimit

	more int
}

// rests are what has no record of somebody's events.
type rests struct {
	recorded time.Time // when one had one
	more     int       // how many had none since
}

// first reports whether an event over a limit has a record, and counts it if not. The lock
// is held.
func (l *limits) first(r *rests, now time.Time) bool {
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

// forgotten keeps count of the events of somebody who is told of no more. The lock is held.
func (l *limits) forgotten(limit string, r *rests, now time.Time) {
	if r.more == 0 {
		return
	}
	if l.others[limit] == nil {
		l.others[limit] = &rests{recorded: now}
	}
	l.others[limit].more += r.more
}

// rests are those that it is time to tell of, or all.
func (l *limits) rests(now time.Time, all bool) (due []rest) {
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

// tellRests tells how many events were over a limit and have no record.
func (a *Aggregator) tellRests(all bool) {
	for _, r := range a.intake.limits.rests(time.Now(), all) {
		a.report.Feed.Limited(r.name, r.limit, r.more)
	}
}
