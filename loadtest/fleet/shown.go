package fleet

import (
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/loadtest/live"
	"github.com/hookfabric/hookfabric/loadtest/load"
)

// shown is what whoever looks at a load while it lasts was last told.
type shown struct {
	underWay map[string]int64 // by driver
}

// take shows what a driver counted.
func (s *shown) take(to *live.Run, l *Line) {
	for i := range l.Seconds {
		c := &l.Seconds[i]
		to.Calls(c.Kind, "answered", c.Answered)
		to.Calls(c.Kind, "failed", c.Failed)
		to.Calls(c.Kind, "unsent", c.Unsent)
		to.Times(c.Kind, &c.Latency)
	}
	for _, c := range l.Checks {
		to.Wrong(c.Name, c.Wrong)
	}
	if s.underWay == nil {
		s.underWay = map[string]int64{}
	}
	driver, _, _ := strings.Cut(l.By, ".") // the one after a killed one takes its place
	s.underWay[driver] = l.UnderWay
	all := int64(0)
	for _, n := range s.underWay {
		all += n
	}
	to.InFlight(all)
}

// load shows how far a load is, so long after its beginning.
func (s *shown) load(to *live.Run, c load.Curve, since time.Duration) {
	to.Offered(c.Rate(since))
	to.Over(since.Seconds() / max(c.Long().Seconds(), 1e-9))
}
