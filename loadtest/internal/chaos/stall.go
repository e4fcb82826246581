package chaos

import (
	"time"

	"github.com/hookfabric/hookfabric/loadtest/internal/audit"
)

// rejectedIn is when a broker rejects a request to store a message at the latest, and slack how
// much later a busy machine may be.
const (
	rejectedIn = 10 * time.Second
	slack      = time.Second
)

// stall is the impact of a step on the requests to put a message into the queue, until the next
// step.
type stall struct {
	// there and elsewhere are the longest times in which the queue accepted nothing: through the
	// broker with the fault, and through all others.
	there, elsewhere time.Duration
	// answer is the longest time until a request was accepted or rejected. Of a broker without
	// the fault, it includes requests without an answer.
	answer                   time.Duration
	accepted, rejected, lost int
}

// stalled returns the impact of a step at a broker from one time until another.
func stalled(all []audit.Attempt, broker int, from, until time.Time) (s stall) {
	last := [2]time.Time{from, from} // elsewhere, there
	for _, a := range all {
		if a.Answered.Before(from) || a.Asked.After(until) {
			continue
		}
		switch {
		case a.Lost:
			s.lost++
		case a.Accepted:
			s.accepted++
		default:
			s.rejected++
		}
		if !a.Lost || a.Broker != broker {
			s.answer = max(s.answer, a.Answered.Sub(a.Asked))
		}
		if !a.Accepted {
			continue
		}
		if a.Broker == broker {
			s.there = max(s.there, a.Answered.Sub(last[1]))
			last[1] = a.Answered
		} else {
			s.elsewhere = max(s.elsewhere, a.Answered.Sub(last[0]))
			last[0] = a.Answered
		}
	}
	s.elsewhere, s.there = max(s.elsewhere, until.Sub(last[0])), max(s.there, until.Sub(last[1]))
	return s
}
