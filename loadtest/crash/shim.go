package crash

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/daemon"
	"github.com/hookfabric/hookfabric/loadtest/audit"
	"github.com/hookfabric/hookfabric/loadtest/measure"
	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// The tools that agents ask about. Each is judged by a hook of the pool of
// hookworkers; the second one's denies, fail-closed.
const (
	free      = "Free"
	forbidden = "Forbidden"
)

const (
	// deadline is how long a call may take.
	deadline = 10 * time.Second
	// countEvery is how often a shim writes down what it asked; a kill takes as
	// much of it along.
	countEvery = time.Second
	// dialEvery is how often a shim looks for a broker that is not there.
	dialEvery = 50 * time.Millisecond
	// flushIn is how long a shim that is told to end takes to acknowledge.
	flushIn = 5 * time.Second
)

// ShimConfig is what a shim is to be started with.
type ShimConfig struct {
	// NATS is the broker's server.
	NATS string `json:"nats"`
	// Log is its log, By this process.
	Log string `json:"log"`
	By  string `json:"by"`
	// Daemon is the state folder of the daemon that asks for them; empty: the shim itself asks.
	Daemon string `json:"daemon,omitzero"`
	// Agents are those that it holds.
	Agents []string `json:"agents"`
	// Lanes is how many tools each agent uses at the same time.
	Lanes int `json:"lanes"`
	// Think is about how long an agent waits between two tools.
	Think schema.Duration `json:"think"`
}

// shim is many agents on one connection, or before one daemon.
type shim struct {
	c    *client.Client // nil: a daemon asks
	d    *daemon.Client // nil: none does
	name string         // the daemon's file of its name
	log  *audit.Journal
	stop context.CancelFunc
	work sync.WaitGroup

	mu      sync.Mutex // guards what follows
	calls   audit.Calls
	late    int64 // of which the log has been told
	failure error
}

// startShim has all agents ask until the parent closes it.
func startShim(ctx context.Context, c ShimConfig) (*proc.Role, error) {
	s := new(shim)
	var err error
	if c.Daemon != "" {
		s.d, s.name = &daemon.Client{Socket: socketIn(c.Daemon)}, nameIn(c.Daemon)
	} else if s.c, err = dial(ctx, c); err != nil {
		return nil, err
	}
	if s.log, err = audit.OpenJournal(c.Log, c.By); err != nil {
		if s.c != nil {
			s.c.Close()
		}
		return nil, err
	}
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.work.Go(func() { s.counts(ctx) })
	for _, name := range c.Agents {
		a := &agent{shim: s, name: name, think: c.Think.Std()}
		if s.c != nil {
			a.reads = audit.NewRecipient(name, s.c, s.log)
		}
		for range c.Lanes {
			s.work.Go(func() { a.live(ctx) })
		}
	}
	return &proc.Role{Close: s.close}, nil
}

// dial waits for the broker, which may be dead as well.
func dial(ctx context.Context, c ShimConfig) (*client.Client, error) {
	for {
		fabric, err := client.Connect(ctx, client.Options{URL: c.NATS, Name: "loadtest " + c.By, Timeout: deadline})
		if err == nil {
			return fabric, nil
		}
		if !measure.Pause(ctx, dialEvery) {
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
}

// counts writes down now and then what was asked.
func (s *shim) counts(ctx context.Context) {
	for more := true; more; {
		more = measure.Pause(ctx, countEvery)
		s.count()
	}
}

func (s *shim) count() {
	s.mu.Lock()
	calls := s.calls
	s.calls = audit.Calls{}
	if s.c != nil {
		late := int64(s.c.Late())
		calls.Late, s.late = late-s.late, late
	}
	s.mu.Unlock()
	if calls.Asked > 0 {
		s.noted(s.log.Write(audit.Entry{Calls: &calls}))
	}
}

// noted is false after a log could not be written: that makes the run worthless.
func (s *shim) noted(err error) bool {
	if err != nil {
		s.mu.Lock()
		s.failure = err
		s.mu.Unlock()
		s.stop()
	}
	return err == nil
}

func (s *shim) close() error {
	s.stop()
	s.work.Wait()
	s.count()
	if s.d != nil {
		s.d.Close()
		return errors.Join(s.failure, s.log.Close())
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushIn)
	defer cancel()
	err := s.c.Flush(ctx)
	s.c.Close()
	return errors.Join(err, s.failure, s.log.Close())
}

// agent is one agent.
type agent struct {
	*shim
	name  string
	think time.Duration
	reads *audit.Recipient // nil: a daemon acknowledges
	by    sync.Map         // of the daemon that brought something, by event
}

// live uses one tool after the other.
func (a *agent) live(ctx context.Context) {
	for n := 0; measure.Pause(ctx, a.think/2+rand.N(a.think)); n++ {
		tool := free
		if rand.IntN(10) == 0 {
			tool = forbidden
		}
		// What was begun is ended, also if the shim is told to end.
		if !a.use(context.WithoutCancel(ctx), tool) {
			return
		}
	}
}

// use is one use of a tool: the question whether it may be, and, if so, the
// event that it was. It returns false if what was handed over cannot be logged.
func (a *agent) use(ctx context.Context, tool string) bool {
	v, ok := a.ask(ctx, &schema.Event{HookType: schema.PreToolUse, ToolName: tool, ToolInput: []byte(`{}`)})
	switch {
	case !ok:
		return a.acknowledged()
	case tool == forbidden && v.Decision != schema.Deny:
		a.wrong(fmt.Sprintf("the tool %s was not denied but %q", tool, v.Decision))
	case tool == forbidden:
		return a.take(v)
	case schema.PreToolUse.Blocks(v.Decision):
		a.wrong(fmt.Sprintf("the tool %s was denied: %s", tool, v.Reason))
	}
	if !a.take(v) {
		return false
	}
	after := schema.Event{HookType: schema.PostToolUse, ToolName: tool, ToolInput: []byte(`{}`), ToolOutput: []byte(`"done"`)}
	if rand.IntN(8) == 0 {
		after = schema.Event{HookType: schema.ToolError, ToolName: tool, ToolInput: []byte(`{}`), Error: "it broke"}
	}
	if v, ok = a.ask(ctx, &after); ok && !a.take(v) {
		return false
	}
	return a.acknowledged()
}

// ask asks once, as the agent. Nobody asks again about an event that got no
// verdict: what was meant for it comes with a later one.
func (a *agent) ask(ctx context.Context, e *schema.Event) (*schema.Verdict, bool) {
	e.AgentID, e.SessionID, e.Runtime = a.name, "s-"+a.name, "generic"
	id, err := uuid.NewV7()
	if err != nil {
		a.wrong(err.Error())
		return nil, false
	}
	e.EventID = id.String()
	began := time.Now()
	v, err := a.verdict(ctx, e)
	took := schema.Duration(time.Since(began))
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls.Asked++
	a.calls.Longest = max(a.calls.Longest, took)
	if err != nil {
		a.calls.Unanswered++
	}
	return v, err == nil
}

func (s *shim) wrong(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls.Wrong++
	s.calls.Why = why
}

// verdict asks the fabric, or has the daemon ask it.
func (a *agent) verdict(ctx context.Context, e *schema.Event) (*schema.Verdict, error) {
	if a.d != nil {
		return a.daemonVerdict(ctx, e)
	}
	return a.c.Ask(ctx, e)
}

// take hands over what a verdict brought.
func (a *agent) take(v *schema.Verdict) bool {
	if a.d != nil {
		return a.noted(a.hand(v))
	}
	return a.noted(a.reads.Take(v))
}

// acknowledged logs what is known meanwhile to have been acknowledged. What a daemon
// acknowledged is not known.
func (a *agent) acknowledged() bool { return a.d != nil || a.noted(a.reads.Acknowledged()) }
