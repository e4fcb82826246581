package bench

import "time"

// Limits are the budgets of a line; 0: none.
type Limits struct {
	// P50 is the largest ratio of the median with one caller, P50Many with many.
	P50, P50Many float64
	// Throughput is the smallest ratio of the calls per second, CPU the largest of the CPU time of all processes per
	// call, and P99 the largest of the 99th percentile, each with many callers.
	Throughput, CPU, P99 float64
}

// The other budgets of the project.
const (
	// FurtherPool is what each further pool in sequence may add to a call, divided by a bare request-reply.
	FurtherPool = 1.0
	// PendingForOthers is a call while items wait for other agents, divided by the same call without them.
	PendingForOthers = 1.1
	// RecordedFacts is a call with the record of facts, divided by one without a record.
	RecordedFacts = 1.05
	// ShimByDaemon is a run of agentshim hook that asks the daemon, divided by a program with one request on a Unix
	// socket.
	ShimByDaemon = 1.7
	// ShimDirect is the same for a run that asks the fabric itself.
	ShimDirect = 2.8
	// NoticeCrash is when an embedded server has noticed a worker's crash.
	NoticeCrash = 20 * time.Millisecond
	// NoticeLoss is when the other losses are noticed: a crash by an external server, a hang, and the loss of an
	// aggregator.
	NoticeLoss = time.Second
	// FreezeAll is when a freeze has reached every shim.
	FreezeAll = time.Second
)

// lines lists the ratios of the command bench with their budgets. A floor is what NATS and its client cost for the
// same path.
func lines() []Line {
	all := []Line{
		{Of: noHook, By: raw},
		{Name: against(noHook, floorIn), Of: noHook, By: floorIn, Limits: Limits{P50: 1.1, Throughput: 0.85, CPU: 1.2}},
		{Of: floorIn, By: raw},
		{Of: floorOut, By: raw},
		{Of: twoPools, By: raw},
		{Name: "each further pool in sequence, added", Of: twoPools, Less: inPool(1), By: raw, Limits: Limits{P50: FurtherPool}},
		{Of: command, By: raw},
	}
	for _, n := range counts() {
		pool := Limits{P50: 1.15, Throughput: 0.88, CPU: 1.15}
		if n == 8 {
			pool = Limits{P50: 1.2, Throughput: 0.8, CPU: 1.25}
		}
		all = append(all,
			Line{Of: inBroker(n), By: raw}, Line{Of: inPool(n), By: raw}, Line{Of: byWebhook(n), By: raw}, Line{Of: byStages(n), By: raw},
			Line{Name: against(inBroker(n), floorIn), Of: inBroker(n), By: floorIn, Limits: Limits{P50: 1.2, Throughput: 0.7, CPU: 1.5}},
			Line{Name: against(inPool(n), floorOut), Of: inPool(n), By: floorOut, Limits: pool},
			Line{Name: against(inBroker(n), byWebhook(n)), Of: inBroker(n), By: byWebhook(n), Limits: Limits{P50: 1.03, Throughput: 1, P99: 1}},
			Line{Name: against(inPool(n), byStages(n)), Of: inPool(n), By: byStages(n), Limits: Limits{Throughput: 1}})
	}
	return all
}

// against names the ratio of two contenders.
func against(of, by string) string { return of + " : " + by }
