// Package decide returns a verdict for every call of an agent. The fabric judges the call. If
// it does not answer, the last known policy decides.
//
// A [Judge] serves one process. `agentshim hook` asks it once. The daemon and the proxies
// ask it as long as they live, for any number of agents and from any number of goroutines.
package decide

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// The words of --unreachable.
const (
	UnreachableDeny  = "deny"
	UnreachableAllow = "allow"
)

// A Question is one call to be judged.
type Question struct {
	// Event is the call. AgentID and HookType are always there.
	Event *schema.Event
	// Unreadable is why the event's contents cannot be judged; nil: they can. Only
	// its routing counts then.
	Unreadable error
	// Workspaces is the folder below which workspaces of other agents are unpacked;
	// empty: nowhere.
	Workspaces string
	// Native is the runtime's own payload; empty: there is none. It goes along if
	// some hook needs it.
	Native []byte
	// Key is the same for all questions about one moment of one call, ByID says that
	// it is made of an id, and Pair is the same before and after the call: see
	// dialect.Call. A judge has no use for them; what stands before one does.
	Key, Pair string
	ByID      bool
	// Apart is set by a proxy that sees a call without the runtime's id of it: it is the name
	// under which the runtime's own hooks have the tool. Pair names the call among the
	// proxy's own then.
	Apart string
	// Again: Key is the event's own id, so that whoever asks a second time heard no answer.
	Again bool
	// Unreachable says what becomes of tool calls and prompts that nobody judged
	// and no policy is known for: [UnreachableDeny] or [UnreachableAllow].
	Unreachable string
}

// A Judgement is what came of a question.
type Judgement struct {
	// Verdict is never nil.
	Verdict *schema.Verdict
	// Unjudged is why nobody of the fabric judged; nil: somebody did.
	Unjudged error
}

// A Judge gets calls judged. It is made by [New] or [NewResident], and safe for
// many goroutines.
type Judge struct {
	link       Link
	resident   bool
	policy     *policy
	background *background
	dials      sync.WaitGroup

	mu         sync.Mutex           // guards what follows
	line       *client.Client       // nil: nobody has reached the bus yet
	dialling   *attempt             // nil: none is under way
	deliveries map[string]*Delivery // by agent
}

// New makes the judge of a process that asks about one event and ends. It
// connects when it is asked.
func New(link Link) *Judge {
	link.Stderr = &lockedWriter{w: link.Stderr}
	return &Judge{
		link: link, deliveries: map[string]*Delivery{}, background: newBackground(),
		policy: &policy{state: shimstate.Folder(link.State), urls: link.urls(), asked: make(chan struct{})},
	}
}

// NewResident makes the judge of a process that stays, for any number of agents:
// one connection, made when it is asked first and kept from then on.
func NewResident(link Link) *Judge {
	j := New(link)
	j.resident = true
	return j
}

// Cause adds to err, because of which the fabric did not judge the call, why the event is unreadable.
// It is one line, because each message of agentshim takes one.
func (q *Question) Cause(err error) error {
	if q.Unreadable == nil {
		return err
	}
	return fmt.Errorf("%w; %w", q.Unreadable, err)
}

// Ask gets a call judged before ctx ends: where nobody answers, by what is known
// of the fabric's policy, and where nothing is, by q.Unreachable. What nobody
// judged is recorded, and handed in when somebody answers again.
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

// askInTime asks the fabric, and waits for nothing else than ctx allows.
func (j *Judge) askInTime(ctx context.Context, q Question) (*schema.Verdict, error) {
	if q.Event.EventID == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("making an event id: %w", err)
		}
		q.Event.EventID = id.String()
	}
	event := *q.Event // who is left alone goes on with it
	q.Event = &event
	waiting, cancel := patient(ctx)
	defer cancel()
	v, err := inTime(waiting, func() (*schema.Verdict, error) { return j.ask(ctx, &q) })
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
		return nil, unnamedError{client.ErrDenied} // the server would say so, too
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

// addNative has the runtime's own payload go along, if some hook needs it. One that is
// long because of the conversation in it has no room beside that.
func (j *Judge) addNative(q *Question) {
	fits := len(q.Event.History) == 0 || len(q.Native) <= maxNative
	if q.Event.Native == "" && len(q.Native) > 0 && fits && j.policy.needsNative(q.Event, len(q.Native)) {
		q.Event.Native = string(q.Native)
	}
}

// Handed says that the agent has what the verdict of an event brought. What a
// process that ends cannot confirm within the time given is kept for the agent's
// next shim; one that stays goes on in the background, and does not wait.
func (j *Judge) Handed(ctx context.Context, v *schema.Verdict, within time.Duration) {
	if j.resident {
		switch line := j.connected(); {
		case line == nil:
		case mustAckNow(v):
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
	if j.link.State != "" { // without it no later process reads the policy
		all.Go(j.guarded(func() { _ = j.updatePolicy(ctx, j.line) }))
	}
	for agent, g := range j.deliveries {
		all.Go(j.guarded(func() { _, _ = j.reportUnjudged(ctx, j.line, agent, maxLastReport) }))
		g.Done(ctx, v.EventID, within)
	}
	all.Wait()
}

// flushTime is how long a judge that closes waits for what is to be said still.
const flushTime = 2 * time.Second

// Close says what is to be said still, keeps what cannot be, and ends the
// connection. Nobody may ask any more.
func (j *Judge) Close() {
	j.background.mu.Lock() // nothing begins after this
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
		_ = j.line.Flush(ctx) // what it could not say is noted, and kept
		for _, g := range j.deliveries {
			g.store(g.Client.Noted(g.agent))
		}
	}
	j.line.Close()
}
