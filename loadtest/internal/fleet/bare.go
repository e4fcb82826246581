package fleet

import (
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
)

const (
	// bareKind is the kind of requests that skip the fabric. bareEvery is how long after
	// one a driver makes the next.
	bareKind  = "bare"
	bareEvery = 20 * time.Millisecond
	// bareRatio is the name of the figure that compares an event with a bare request.
	bareRatio = "p50 : that of a bare request-reply"
	// bareTime limits how long one may take.
	bareTime = 5 * time.Second
	// bareMost limits the median of an event to this multiple of the median of a bare
	// request. Other load on the machine slows both. On an otherwise idle machine the ratio
	// is about 1.8.
	bareMost = 6
	// bareRate is the highest rate of tool uses a second at which bareMost holds on any
	// machine. If the fabric does not keep up, events wait and bare requests do not.
	bareRate = 300
	// bareSize is the size of a bare request, about that of an event.
	bareSize = 1 << 10
)

// aside makes a driver send requests to itself, through the server only. Events of the same
// time are compared with them. Without a connection or an answer it makes no more requests.
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
	for load.Pause(ctx, bareEvery) { // measured from the end of the pause: the server is not to blame for a late timer
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

// bareBudget returns how many bare requests an event may take. It returns 0, no limit, if
// the load may exceed what the fabric keeps up with, or if the scenario has faults or
// runaway agents.
func bareBudget(s *scenario.Scenario) float64 {
	crowded := slices.ContainsFunc(s.Curve(), func(p load.Step) bool { return p.Rate > bareRate })
	if s.Kind != scenario.Fleet || s.Excused() || s.Runaway.Agents > 0 || crowded {
		return 0
	}
	return bareMost
}
