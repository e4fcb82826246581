package client

import (
	"slices"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus"
)

// The limits of a client's memory. The fabric delivers forgotten items again.
const (
	// maxNoted limits the waiting acknowledgements of all agents together.
	maxNoted = 10_000
	// maxGiven limits the events whose items were not marked as delivered yet.
	maxGiven = 10_000
	// maxHanded limits the remembered delivered items of one agent.
	maxHanded = 4096
	// maxAgents limits the remembered agents.
	maxAgents = 10_000
)

// The times of acknowledgements in requests of their own.
const (
	// ackAfter is how long an acknowledgement waits for the agent's next event.
	ackAfter = 2 * time.Second
	// ackRetry and ackRetryMost limit the time between attempts.
	ackRetry     = time.Second
	ackRetryMost = 30 * time.Second
)

// A deliveryLog records the delivered items and the acknowledgements to send. It is about
// one fabric, and starts again when another one answers.
type deliveryLog struct {
	mu       sync.Mutex // guards the fields below
	fabric   string     // empty: no fabric has answered yet
	agents   map[string]*agentLog
	noted    int                   // acknowledgements of all agents
	dropped  int                   // acknowledgements dropped because of the limits
	given    map[string]*Handover  // by event: received and not delivered yet
	order    []string              // keys of given, oldest first
	recalled map[string][]Handover // by agent, until the fabric is known
	uses     uint64                // counts accesses, to find the least recently used agent
}

// An agentLog is the part of a deliveryLog about one agent.
type agentLog struct {
	noted  []string            // events to acknowledge, oldest first
	handed map[uint64]struct{} // delivered items
	order  []uint64            // keys of handed, oldest first
	due    time.Time           // when a request of its own is due; zero: no request is
	wait   time.Duration       // pause before the next attempt; 0: no attempt has failed
	since  time.Time           // when the oldest of noted was noted
	busy   bool                // a request is in progress
	used   uint64
}

func newDeliveryLog() *deliveryLog {
	return &deliveryLog{agents: map[string]*agentLog{}, given: map[string]*Handover{}, recalled: map[string][]Handover{}}
}

// agentLog returns the log of an agent, and removes the least recently used one if there
// are too many.
func (l *deliveryLog) agentLog(agent string) *agentLog {
	l.uses++
	a := l.agents[agent]
	if a == nil {
		if len(l.agents) >= maxAgents {
			l.forget()
		}
		a = &agentLog{handed: map[uint64]struct{}{}}
		l.agents[agent] = a
	}
	a.used = l.uses
	return a
}

func (l *deliveryLog) forget() {
	oldest := ""
	for agent, a := range l.agents {
		if oldest == "" || a.used < l.agents[oldest].used {
			oldest = agent
		}
	}
	l.noted -= len(l.agents[oldest].noted)
	l.dropped += len(l.agents[oldest].noted)
	delete(l.agents, oldest)
}

// pendingAcks returns the events that an agent's next event acknowledges.
func (l *deliveryLog) pendingAcks(agent string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.noted == 0 && len(l.recalled) == 0 {
		return nil
	}
	var events []string
	if a := l.agents[agent]; a != nil {
		events = slices.Clone(a.noted[:min(len(a.noted), bus.MaxAcks)])
	}
	for _, h := range l.recalled[agent] {
		for _, e := range h.Events {
			if len(events) < bus.MaxAcks && !slices.Contains(events, e) {
				events = append(events, e)
			}
		}
	}
	return events
}

// learn records which fabric answers, and the acknowledgements that it confirms. It
// returns how many acknowledgements became void because the fabric changed.
func (l *deliveryLog) learn(agent, fabric string, acked []string) (void int) {
	if fabric == "" {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if fabric != l.fabric {
		void = l.noted
		l.fabric, l.noted, l.order = fabric, 0, nil
		l.agents, l.given = map[string]*agentLog{}, map[string]*Handover{}
		for _, hs := range l.recalled {
			for _, h := range hs {
				l.restoreLocked(h)
			}
		}
		l.recalled = map[string][]Handover{}
	}
	if len(acked) > 0 {
		l.confirm(agent, acked)
	}
	return void
}

// restoreLocked adds the state of an earlier process. The caller holds the lock.
func (l *deliveryLog) restoreLocked(h Handover) {
	switch {
	case h.Fabric == "":
	case l.fabric == "":
		l.recalled[h.Agent] = append(l.recalled[h.Agent], h)
	case l.fabric == h.Fabric:
		a := l.agentLog(h.Agent)
		a.markDelivered(h.Sequences)
		for _, e := range h.Events {
			l.note(a, e)
		}
	}
}

// restore adds the state of an earlier process.
func (l *deliveryLog) restore(h *Handover) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.restoreLocked(*h)
}

// markDelivered records delivered items.
func (a *agentLog) markDelivered(seqs []uint64) {
	for _, s := range seqs {
		if _, known := a.handed[s]; known {
			continue
		}
		a.handed[s] = struct{}{}
		a.order = append(a.order, s)
	}
	if n := len(a.order) - maxHanded; n > 0 {
		for _, s := range a.order[:n] {
			delete(a.handed, s)
		}
		a.order = slices.Delete(a.order, 0, n)
	}
}

// note records that an event must be acknowledged.
func (l *deliveryLog) note(a *agentLog, event string) {
	if slices.Contains(a.noted, event) {
		return
	}
	if l.noted >= maxNoted {
		l.drop()
	}
	now := time.Now()
	if len(a.noted) == 0 {
		a.since = now
	}
	if a.due.IsZero() {
		a.due = now.Add(ackAfter)
	}
	a.noted = append(a.noted, event)
	l.noted++
}

// drop removes an acknowledgement of the agent whose oldest one has waited longest.
func (l *deliveryLog) drop() {
	var oldest *agentLog
	for _, a := range l.agents {
		if len(a.noted) > 0 && (oldest == nil || a.since.Before(oldest.since)) {
			oldest = a
		}
	}
	oldest.noted = slices.Delete(oldest.noted, 0, 1)
	oldest.clearSchedule()
	l.noted--
	l.dropped++
}

// clearSchedule cancels the next request if there is no acknowledgement left.
func (a *agentLog) clearSchedule() {
	if len(a.noted) == 0 {
		a.due, a.wait = time.Time{}, 0
	}
}

// confirm removes events whose acknowledgement the fabric has stored.
func (l *deliveryLog) confirm(agent string, events []string) {
	a := l.agents[agent]
	if a == nil {
		return
	}
	before := len(a.noted)
	a.noted = slices.DeleteFunc(a.noted, func(e string) bool { return slices.Contains(events, e) })
	l.noted -= before - len(a.noted)
	a.clearSchedule()
}

// addReceived records the items of an event until they are delivered.
func (l *deliveryLog) addReceived(event string, h *Handover) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.given[event] == nil {
		l.order = append(l.order, event)
	}
	l.given[event] = h
	for len(l.given) > maxGiven {
		delete(l.given, l.order[0])
		l.order = l.order[1:]
	}
}

// takeReceived returns the items of an event, once. Items that must not be acknowledged
// stay in the log.
func (l *deliveryLog) takeReceived(event string) *Handover {
	h := l.given[event]
	if h != nil && len(h.Events) > 0 {
		delete(l.given, event)
		if i := slices.Index(l.order, event); i >= 0 {
			l.order = slices.Delete(l.order, i, i+1)
		}
	}
	return h
}

// isDelivered returns a function that reports whether an item was delivered to an agent.
func (l *deliveryLog) isDelivered(agent string) func(uint64) bool {
	return func(seq uint64) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		a := l.agents[agent]
		if a == nil {
			return false
		}
		_, handed := a.handed[seq]
		return handed
	}
}
