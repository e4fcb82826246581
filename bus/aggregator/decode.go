package aggregator

import (
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus"
)

// decode reads the headers of an event. It hands on an event that is malformed too: its agent is
// charged for it, and [verify] answers it.
type decode struct{}

func (decode) pass(e *arrival) bool {
	if !e.parsed {
		e.parsed = true
		e.msg.Subject = strings.TrimSuffix(e.msg.Subject, bus.AgainSuffix)
		e.req, e.err = bus.ParseEventMsg(e.msg)
	}
	e.waited = time.Since(e.at)
	return true
}
