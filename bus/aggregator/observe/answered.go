package observe

import (
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

// Answered is an event that was answered.
type Answered struct {
	*schema.Routing

	Msg     *nats.Msg
	Arrived time.Time
	// Shed: no hook ran. Malformed: it could not be judged as it was.
	Shed, Malformed bool
	// Limited is the limit that the agent was over; empty: it was within all.
	Limited string
	// Unrecorded: it is one of many such events, of which only the number is recorded.
	Unrecorded bool
	// Wait is after how long the agent is within the limit; 0: it is not known.
	Wait time.Duration
}

// attempt returns how often the shim sent the event; 0 means once.
func (t *Answered) attempt() int {
	if n, err := strconv.Atoi(t.Msg.Header.Get(schema.HeaderAttempt)); err == nil && n > 1 && n <= bus.MaxAttempt {
		return n
	}
	return 0
}

// stopped reports whether the limit that the agent was over refused the call: no hook's
// failure was taken as no opinion then.
func (t *Answered) stopped(v *schema.Verdict) bool {
	return t.Limited != "" && t.Event.Terminal(v.Decision)
}
