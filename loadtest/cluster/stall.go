package cluster

import "time"

// stall is what became of requests to put something into the queue from one step on,
// until the next one began.
type stall struct {
	// longest is the longest time in which nothing was accepted: by way of the broker
	// that suffered, and by way of all others.
	there, elsewhere time.Duration
	// answer is the longest time that one request took until it was accepted or refused,
	// or, by way of a broker that did not suffer, until nobody waited any more.
	answer                  time.Duration
	accepted, refused, lost int
}

// stalled looks at what was answered from a step on.
func stalled(all []attempt, broker int, from, until time.Time) (s stall) {
	last := [2]time.Time{from, from} // elsewhere, there
	for _, a := range all {
		if a.answered.Before(from) || a.asked.After(until) {
			continue
		}
		switch {
		case a.lost:
			if s.lost++; a.broker != broker {
				s.answer = max(s.answer, a.answered.Sub(a.asked))
			}
			continue
		case !a.accepted:
			s.refused++
		default:
			s.accepted++
		}
		s.answer = max(s.answer, a.answered.Sub(a.asked))
		if !a.accepted {
			continue
		}
		if a.broker == broker {
			s.there = max(s.there, a.answered.Sub(last[1]))
			last[1] = a.answered
		} else {
			s.elsewhere = max(s.elsewhere, a.answered.Sub(last[0]))
			last[0] = a.answered
		}
	}
	s.elsewhere, s.there = max(s.elsewhere, until.Sub(last[0])), max(s.there, until.Sub(last[1]))
	return s
}

// thawed is what became of the calls of frozen agents by way of one broker.
type thawed struct {
	broker int
	// passed is how many passed after the freeze was asked for, the last one so long
	// after that; confirmed is how many of them were asked after it was confirmed, or
	// answered so long after that their answer cannot have been on its way already.
	passed    int
	last      time.Duration
	confirmed int
	// unanswered is how many got no answer, refused how many were.
	unanswered, refused int
	// first is when the first one was refused, after the freeze was asked for.
	first time.Duration
}

// of is what became of the calls by way of one broker.
func (f *frozen) of(broker int) (t thawed) {
	t.broker = broker
	for _, p := range f.probes {
		if p.broker != broker || p.asked.Before(f.asked) {
			continue
		}
		after := p.answered.Sub(f.asked)
		switch {
		case p.passed:
			t.passed++
			t.last = max(t.last, after)
			if p.asked.After(f.answered) || p.answered.Sub(f.answered) > slack {
				t.confirmed++
			}
		case p.refused:
			t.refused++
			if t.first == 0 || after < t.first {
				t.first = after
			}
		default:
			t.unanswered++
		}
	}
	return t
}
