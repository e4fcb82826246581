package client

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus"
)

// The bounds of what a client remembers. What is forgotten comes again.
const (
	// maxNoted bounds the acknowledgements that wait, of all agents together.
	maxNoted = 10_000
	// maxGiven bounds the events whose hand-over was not said yet.
	maxGiven = 10_000
	// maxHanded bounds the items handed over that are remembered of one agent.
	maxHanded = 4096
	// maxAgents bounds the agents of which anything is remembered.
	maxAgents = 10_000
)

// The times of acknowledgements that travel in a request of their own.
const (
	// ackAfter is how long one waits for the agent's next question.
	ackAfter = 2 * time.Second
	// ackRetry and ackRetryMost bound the time between attempts.
	ackRetry     = time.Second
	ackRetryMost = 30 * time.Second
)

// A ledger is what a client remembers of what it handed over, and what it still
// has to say about that. It is about one fabric; another one begins a new page.
type ledger struct {
	mu       sync.Mutex // guards what follows
	fabric   string     // empty: none has answered yet
	accounts map[string]*account
	noted    int                   // of all accounts
	dropped  int                   // acknowledgements forgotten, because there were too many
	given    map[string]*Handover  // by event: brought by a verdict, not yet handed over
	order    []string              // of given, oldest first
	recalled map[string][]Handover // by agent, until the fabric is known
	uses     uint64                // counts, to find who was not used for longest
}

// An account is what the ledger knows of one agent.
type account struct {
	noted  []string            // events to be acknowledged, oldest first
	handed map[uint64]struct{} // items
	order  []uint64            // of handed, oldest first
	due    time.Time           // when a request of its own is due; zero: none is
	wait   time.Duration       // before the next attempt; 0: none has failed
	since  time.Time           // when the oldest of noted was noted
	busy   bool                // a request is under way
	used   uint64
}

func newLedger() *ledger {
	return &ledger{accounts: map[string]*account{}, given: map[string]*Handover{}, recalled: map[string][]Handover{}}
}

// account is the agent's; one that was not used for longest makes room for it.
func (l *ledger) account(agent string) *account {
	l.uses++
	a := l.accounts[agent]
	if a == nil {
		if len(l.accounts) >= maxAgents {
			l.forget()
		}
		a = &account{handed: map[uint64]struct{}{}}
		l.accounts[agent] = a
	}
	a.used = l.uses
	return a
}

func (l *ledger) forget() {
	oldest := ""
	for agent, a := range l.accounts {
		if oldest == "" || a.used < l.accounts[oldest].used {
			oldest = agent
		}
	}
	l.noted -= len(l.accounts[oldest].noted)
	l.dropped += len(l.accounts[oldest].noted)
	delete(l.accounts, oldest)
}

// riders are the events that an agent's next question acknowledges.
func (l *ledger) riders(agent string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.noted == 0 && len(l.recalled) == 0 {
		return nil
	}
	var events []string
	if a := l.accounts[agent]; a != nil {
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

// learn takes in which fabric answers, and what it knows to be acknowledged.
// It returns how many acknowledgements another fabric made void.
func (l *ledger) learn(agent, fabric string, acked []string) (void int) {
	if fabric == "" {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if fabric != l.fabric {
		void = l.noted
		l.fabric, l.noted, l.order = fabric, 0, nil
		l.accounts, l.given = map[string]*account{}, map[string]*Handover{}
		for _, hs := range l.recalled {
			for _, h := range hs {
				l.recall(h)
			}
		}
		l.recalled = map[string][]Handover{}
	}
	if len(acked) > 0 {
		l.confirm(agent, acked)
	}
	return void
}

// recall takes in what a process before this one kept.
func (l *ledger) recall(h Handover) {
	switch {
	case h.Fabric == "":
	case l.fabric == "":
		l.recalled[h.Agent] = append(l.recalled[h.Agent], h)
	case l.fabric == h.Fabric:
		a := l.account(h.Agent)
		a.hand(h.Sequences)
		for _, e := range h.Events {
			l.note(a, e)
		}
	}
}

// keep is recall by itself.
func (l *ledger) keep(h *Handover) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recall(*h)
}

// hand remembers that items were handed over.
func (a *account) hand(seqs []uint64) {
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

// acknowledgeable is an event's id as acknowledgements compare it. One that is
// no UUID would make the question malformed on which it rides.
func acknowledgeable(event string) (string, bool) {
	if len(event) != len(uuid.Nil.String()) || uuid.Validate(event) != nil {
		return "", false
	}
	return strings.ToLower(event), true
}

// note remembers that an event is to be acknowledged.
func (l *ledger) note(a *account, event string) {
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

// drop forgets the oldest acknowledgement, or nearly: that of the agent that has
// waited for longest.
func (l *ledger) drop() {
	var oldest *account
	for _, a := range l.accounts {
		if len(a.noted) > 0 && (oldest == nil || a.since.Before(oldest.since)) {
			oldest = a
		}
	}
	oldest.noted = slices.Delete(oldest.noted, 0, 1)
	oldest.settled()
	l.noted--
	l.dropped++
}

// settled takes the next request off where there is nothing to say any more.
func (a *account) settled() {
	if len(a.noted) == 0 {
		a.due, a.wait = time.Time{}, 0
	}
}

// confirm forgets events that are acknowledged for ever.
func (l *ledger) confirm(agent string, events []string) {
	a := l.accounts[agent]
	if a == nil {
		return
	}
	before := len(a.noted)
	a.noted = slices.DeleteFunc(a.noted, func(e string) bool { return slices.Contains(events, e) })
	l.noted -= before - len(a.noted)
	a.settled()
}

// give remembers what an event brought, until it is handed over.
func (l *ledger) give(event string, h *Handover) {
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

// take returns what an event brought, once. What must not be acknowledged stays
// known, so that nobody does.
func (l *ledger) take(event string) *Handover {
	h := l.given[event]
	if h != nil && len(h.Events) > 0 {
		delete(l.given, event)
		if i := slices.Index(l.order, event); i >= 0 {
			l.order = slices.Delete(l.order, i, i+1)
		}
	}
	return h
}

// before reports which items an agent was handed before.
func (l *ledger) before(agent string) func(uint64) bool {
	return func(seq uint64) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		a := l.accounts[agent]
		if a == nil {
			return false
		}
		_, handed := a.handed[seq]
		return handed
	}
}
