// Package decide returns a verdict for every call of an agent. The fabric judges the call. If
// it does not answer, the last known policy decides.
//
// A [Judge] serves one process. `agentshim hook` asks it once. The daemon and the proxies
// ask it as long as they live, for any number of agents and from any number of goroutines.
package decide

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// The values of --unreachable.
const (
	UnreachableDeny  = "deny"
	UnreachableAllow = "allow"
)

// A Question is one call for the fabric to judge.
type Question struct {
	// Event is the call. AgentID and HookType are always set.
	Event *schema.Event
	// Unreadable is why only the event's routing can be judged; nil: all of it can.
	Unreadable error
	// Workspaces is the folder for workspaces of other agents; empty: the shim unpacks none.
	Workspaces string
	// Native is the runtime's own payload, if it has one, for hooks that need it.
	Native []byte
	// Key, ByID and Pair are those of dialect.Call. The judge's callers use them.
	Key, Pair string
	ByID      bool
	// Apart is set by a proxy that sees no runtime's id of the call: the tool's name in the runtime's own
	// hooks. Pair is then the proxy's own.
	Apart string
	// Again: Key is the event's own id, so a second question means that the client got no answer.
	Again bool
	// Unreachable decides tool calls and prompts without verdict and policy: deny or allow.
	Unreachable string
}

// A Judgement is the answer to a question.
type Judgement struct {
	// Verdict is never nil.
	Verdict *schema.Verdict
	// Unjudged is why the fabric did not judge the call; nil: it did.
	Unjudged error
}

// An Asker has calls judged, and records which verdicts were handed over: a [Judge], or a layer before one.
type Asker interface {
	Ask(ctx context.Context, q Question) Judgement
	Handed(ctx context.Context, v *schema.Verdict, within time.Duration)
}

// A Judge has the fabric judge calls. It is safe for use by several goroutines.
type Judge struct {
	link       Link
	resident   bool
	policy     *policy
	background *background
	dials      sync.WaitGroup

	mu         sync.Mutex           // guards what follows
	line       *client.Client       // nil: not connected yet
	dialling   *attempt             // nil: no attempt is in progress
	deliveries map[string]*Delivery // by agent
}

// New returns the judge of a process that asks about one event and ends.
func New(link Link) *Judge {
	link.Stderr = &lockedWriter{w: link.Stderr}
	b := &background{}
	b.ctx, b.stop = context.WithCancel(context.Background())
	return &Judge{
		link: link, deliveries: map[string]*Delivery{}, background: b,
		policy: &policy{state: shimstate.Folder(link.State), urls: link.urls(), asked: make(chan struct{})},
	}
}

// NewResident returns the judge of a process that stays. It keeps the connection of the first question.
func NewResident(link Link) *Judge {
	j := New(link)
	j.resident = true
	return j
}

// Cause adds the reason why the event is unreadable to err, on the same line.
func (q *Question) Cause(err error) error {
	if q.Unreadable == nil {
		return err
	}
	return fmt.Errorf("%w; %w", q.Unreadable, err)
}

// Ask returns a verdict for a call before ctx ends. Without the fabric, the stored policy decides, else
// q.Unreachable. The judge reports such a call to the fabric later.
func (j *Judge) Ask(ctx context.Context, q Question) (said Judgement) {
	span, asked := j.traced(ctx, q.Event), q.Event.HookType
	ctx = trace.With(ctx, span.Or(nil))
	defer func() { answered(span, asked, &said) }()
	e := *q.Event
	q.Event = &e
	v, err := j.askInTime(ctx, q)
	if err == nil {
		return Judgement{Verdict: v}
	}
	err = q.Cause(err)
	r, late := fromDisk(ctx, j, ruleTime, func() (ruling, error) { return j.policy.rule(&e), nil })
	if late != nil {
		r.faulty = late
	}
	r.cause = err
	v, by, also := r.decide(&q, err)
	done := "refused"
	if v.Decision == schema.None {
		done = "allowed"
	}
	j.say("%s without a verdict (%s): %s%v", done, by, also, err)
	j.logUnjudged(ctx, &q, &r, v, by)
	return Judgement{Verdict: v, Unjudged: err}
}

// askInTime asks the fabric, and waits no longer than ctx allows.
func (j *Judge) askInTime(ctx context.Context, q Question) (*schema.Verdict, error) {
	if q.Event.EventID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("making an event id: %w", err)
		}
		q.Event.EventID = id.String()
	}
	event := *q.Event // after a timeout, ask still uses its own copy
	q.Event = &event
	waiting, cancel := patient(ctx)
	defer cancel()
	v, err := InTime(waiting, func() (*schema.Verdict, error) { return j.ask(ctx, &q) })
	if err != nil && waiting.Err() != nil && !errors.Is(err, client.ErrUnreachable) && !errors.Is(err, client.ErrUnanswered) {
		err = fmt.Errorf("%w: %w", client.ErrUnanswered, err)
	}
	return v, err
}

func (j *Judge) ask(ctx context.Context, q *Question) (v *schema.Verdict, err error) {
	j.reach(ctx)
	if q.Unreadable == nil {
		j.addNative(q)
	}
	g, err := j.delivery(ctx, q.Event.AgentID)
	if err != nil {
		return nil, err
	}
	unknown := q.Event.AgentID == schema.UnknownAgent
	if unknown && !bus.MayAsk(j.link.Creds, q.Event.AgentID) {
		return nil, unnamedError{client.ErrDenied} // the server would deny it
	}
	in := client.In(q.Workspaces)
	if q.Unreadable != nil {
		v, err = g.Client.AskUnreadable(ctx, q.Event, q.Unreadable, in)
	} else {
		v, err = g.Client.Ask(ctx, q.Event, in)
	}
	if unknown && errors.Is(err, client.ErrDenied) {
		err = unnamedError{err}
	}
	if err == nil {
		if stale := j.policy.heard(v); j.resident {
			j.catchUp(g.Client, stale)
			j.policy.first(ctx)
		}
	}
	return v, err
}

// addNative adds the runtime's own payload if some hook needs it, and it fits beside the conversation.
func (j *Judge) addNative(q *Question) {
	fits := len(q.Event.History) == 0 || len(q.Native) <= maxNative
	if q.Event.Native == "" && len(q.Native) > 0 && fits && j.policy.needsNative(q.Event, len(q.Native)) {
		q.Event.Native = string(q.Native)
	}
}

// Handed acknowledges the items of a verdict. A resident judge does so in the background. Others wait for a
// confirmation, and store the acknowledgement for the agent's next shim if none comes in time.
func (j *Judge) Handed(ctx context.Context, v *schema.Verdict, within time.Duration) {
	if j.resident {
		switch line := j.connected(); {
		case line == nil:
		case slices.ContainsFunc(v.Injections, func(in schema.Injection) bool { return in.Source == schema.SourceTimeout }):
			// The grace of a round begins when the agent has its warning.
			j.ackNow(line, v.EventID)
		default:
			line.Handed(v.EventID)
		}
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.line == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	var all sync.WaitGroup
	if j.link.State != "" { // without a state folder, no later process reads the policy
		all.Go(j.guarded(func() { _ = j.updatePolicy(ctx, j.line) }))
	}
	for agent, g := range j.deliveries {
		all.Go(j.guarded(func() { _, _ = j.reportUnjudged(ctx, j.line, agent, maxLastReport) }))
		g.Done(ctx, v.EventID, within)
	}
	all.Wait()
}

// flushTime is how long Close waits for pending acknowledgements.
const flushTime = 2 * time.Second

// Close sends pending acknowledgements, stores those that it cannot send, and closes the connection.
func (j *Judge) Close() {
	j.background.mu.Lock() // no work begins after this
	j.background.stop()
	j.background.mu.Unlock()
	j.background.work.Wait()
	j.dials.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.line == nil {
		return
	}
	if j.resident {
		ctx, cancel := context.WithTimeout(context.Background(), flushTime)
		defer cancel()
		_ = j.line.Flush(ctx) // the loop below stores the acknowledgements that failed
		for _, g := range j.deliveries {
			g.store(g.Client.Noted(g.agent))
		}
	}
	j.line.Close()
}

func (j *Judge) traced(ctx context.Context, e *schema.Event) *trace.Span {
	s := j.link.Tracer.Start(trace.From(ctx), trace.Client, "ask", string(e.HookType))
	s.Text(trace.Agent, e.AgentID)
	s.Text(trace.Event, string(e.HookType))
	s.Text(trace.Tool, e.ToolName)
	s.Text(trace.Runtime, e.Runtime)
	return s
}

func answered(s *trace.Span, t schema.EventType, j *Judgement) {
	if !s.Kept() || j.Verdict == nil {
		return
	}
	s.Text(trace.EventID, j.Verdict.EventID)
	s.Text(trace.Decision, string(cmp.Or(j.Verdict.Decision, schema.Continue)))
	s.Number(trace.Version, int64(j.Verdict.ConfigVersion))
	s.Mark(trace.Denied, t.Blocks(j.Verdict.Decision))
	s.Mark(trace.FailedOpen, j.Verdict.Failed(t) == schema.FailedOpen)
	if j.Unjudged != nil {
		s.Mark(trace.Unjudged, true)
		s.Mark(trace.FailedOpen, !t.Blocks(j.Verdict.Decision))
		s.Fail("the fabric did not judge the call")
	}
	s.Done()
}

const (
	// diskTime limits how long an answer waits for the state folder, ruleTime and logTime at least.
	diskTime = 500 * time.Millisecond
	ruleTime = 50 * time.Millisecond
	logTime  = 10 * time.Millisecond
)

// InTime returns the result of f, or the cause of ctx if ctx ends first: a disk or a server can block f
// without an end. A panic in f is a panic here.
func InTime[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		v     T
		err   error
		broke any
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			r.broke = recover()
			done <- r
		}()
		r.v, r.err = f()
	}()
	select {
	case r := <-done:
		if r.broke != nil {
			panic(r.broke)
		}
		return r.v, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// patient returns ctx with a slightly earlier deadline. Requests end still earlier, with own errors.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-schema.Margin(time.Until(end))/4))
}

// fromDisk returns the result of f, which uses the state folder, within the deadline of ctx.
func fromDisk[T any](ctx context.Context, j *Judge, least time.Duration, f func() (T, error)) (T, error) {
	within := diskTime
	if end, ok := ctx.Deadline(); ok {
		within = min(within, max(time.Until(end)/2, least))
	}
	late := fmt.Errorf("the folder %s did not answer within %s", j.link.State, within)
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), within, late)
	defer cancel()
	return InTime(ctx, f)
}
