package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/load"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/scenario"
)

const (
	// bareKind is the kind of requests that nobody judges, and bareEvery how long after one a
	// driver makes the next.
	bareKind  = "bare"
	bareEvery = 20 * time.Millisecond
	// bareRatio is the figure of how many of them an event takes.
	bareRatio = "p50 : that of a bare request-reply"
	// bareTime is how long one may take.
	bareTime = 5 * time.Second
	// bareMost is how many times as long as a bare one an event may take, in half of all
	// cases: whatever else the machine does slows both. On a machine that does nothing else it
	// is about 1.8.
	bareMost = 6
	// bareRate is up to how many uses of tools a second that is so on any machine: where there
	// are more than the fabric keeps up with they wait, and bare ones do not.
	bareRate = 300
	// bareSize is how long a bare one is, about as an event.
	bareSize = 1 << 10
)

// aside has a driver ask itself now and then, with nothing on the way but the server: what
// events of the same moments are compared with. Where that may not be, nothing is.
func (d *driver) aside(ctx context.Context) {
	nc, err := bus.Connect(ctx, bus.Options{URL: d.NATS, Creds: d.Creds, Name: "loadtest bare " + d.By})
	if err != nil {
		return
	}
	defer nc.Close()
	subject := nc.NewInbox()
	if _, err := nc.Subscribe(subject, func(m *nats.Msg) { _ = m.Respond(m.Data) }); err != nil {
		return
	}
	answered, body := false, make([]byte, bareSize)
	for measure.Pause(ctx, bareEvery) { // from its end on: a timer that is late is not the server's fault
		began := time.Now()
		asking, cancel := context.WithTimeout(ctx, bareTime)
		_, err := nc.RequestWithContext(asking, subject, body)
		cancel()
		switch {
		case err == nil:
			answered = true
			d.bare.Count(load.Call{Kind: bareKind, Due: began, Started: began, Ended: time.Now()})
		case !answered:
			return
		}
	}
}

// bareBudget is how many bare requests an event may take; 0: as many as it will, since it is
// offered more than the fabric keeps up with, or something goes wrong meanwhile.
func bareBudget(s *scenario.Scenario) float64 {
	crowded := slices.ContainsFunc(s.Curve(), func(p load.Step) bool { return max(p.Rate, p.To) > bareRate })
	if s.Kind != scenario.Fleet || s.Excused() || s.Runaway.Agents > 0 || crowded {
		return 0
	}
	return bareMost
}
