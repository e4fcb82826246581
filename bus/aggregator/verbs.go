package aggregator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/micro"

	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/bus/state/freezes"
	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/bus/state/record"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/bus/state/sessions"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// verbTime bounds one request about stored state. A client that gives up after 5 s, as is
	// usual, still receives the error.
	verbTime = 4 * time.Second
)

// verb is a control request about the stored state of agents.
type verb struct {
	// agent marks a request about one agent, on the agent's subject.
	agent bool
	// changes marks a request that changes something and must not run long after it was sent.
	changes bool
	// others marks a request that the agent itself does not send.
	others bool
	// anybody marks a request about no particular agent, which every agent's side sends.
	anybody bool
	// large reports whether the answer may be large; nil: it never is.
	large func(data []byte) bool
	serve func(a *Aggregator, ctx context.Context, agent string, data []byte) (any, error)
}

// verbs returns the requests about stored state, by name.
func verbs() map[string]verb {
	return map[string]verb{
		schema.VerbInject:     {changes: true, others: true, serve: reading((*Aggregator).inject)},
		schema.VerbPending:    {others: true, serve: reading((*Aggregator).pending)},
		schema.VerbWithdraw:   {changes: true, others: true, serve: reading((*Aggregator).withdrawItem)},
		schema.VerbAck:        {agent: true, serve: reading((*Aggregator).ack)},
		schema.VerbDrain:      {agent: true, changes: true, serve: reading((*Aggregator).drain)},
		schema.VerbFetch:      {agent: true, large: always, serve: reading((*Aggregator).fetch)},
		schema.VerbAnswer:     {agent: true, changes: true, serve: reading((*Aggregator).answerOf)},
		schema.VerbRelay:      {agent: true, changes: true, others: true, serve: reading((*Aggregator).relay)},
		schema.VerbMode:       {agent: true, changes: true, serve: reading((*Aggregator).mode)},
		schema.VerbCheckpoint: {agent: true, changes: true, serve: reading((*Aggregator).checkpoint)},
		schema.VerbRound:      {agent: true, changes: true, others: true, serve: reading((*Aggregator).roundOf)},
		schema.VerbPolicy:     {anybody: true, serve: reading((*Aggregator).policy)},
		schema.VerbRecord:     {agent: true, serve: reading((*Aggregator).recordUnjudged)},
		schema.VerbKeep:       {agent: true, serve: reading((*Aggregator).keepPart)},
		schema.VerbPart:       {large: always, serve: reading((*Aggregator).storedPart)},
		schema.VerbFollow:     {large: ofAVersion, serve: reading((*Aggregator).follow)},
	}
}

// verbNames returns the names of all control verbs, in the order of the contract.
func verbNames() []string {
	return []string{statusVerb, "config", "hooks", schema.VerbInject, schema.VerbPending, schema.VerbWithdraw, schema.VerbAck, schema.VerbDrain,
		schema.VerbFetch, schema.VerbAnswer, schema.VerbRelay, schema.VerbMode, schema.VerbCheckpoint, schema.VerbRound,
		schema.VerbPolicy, schema.VerbRecord, schema.VerbKeep, schema.VerbPart, schema.VerbFollow, schema.VerbFreeze, schema.VerbThaw}
}

// reading reads a request before it is served.
func reading[Q, A any](serve func(*Aggregator, context.Context, string, *Q) (A, error)) func(*Aggregator, context.Context, string, []byte) (any, error) {
	return func(a *Aggregator, ctx context.Context, agent string, data []byte) (any, error) {
		req := new(Q)
		if err := readJSON(data, req); err != nil {
			return nil, err
		}
		return serve(a, ctx, agent, req)
	}
}

// none is the answer of verbs that have nothing to say.
type none struct{}

// memorised answers a request about stored state when its result is ready.
func (a *Aggregator) memorised(v verb, name, agent string, r micro.Request) (any, error) {
	done, err := a.intake.limits.requestOf(&v, agent, r.Reply()) // before the request is read
	if err != nil {
		return nil, err
	}
	until, err := a.servable(&v, name, agent)
	if err != nil {
		done()
		return nil, err
	}
	data := r.Data()
	release, err := a.control.budgets.take(name, v.others, int64(max(len(data), verbShare)))
	if err != nil {
		done()
		return nil, err
	}
	var answers int64
	return memorising{
		answer: func(ctx context.Context) (any, error) {
			ctx, cancel := context.WithDeadline(ctx, until)
			defer cancel()
			if v.large != nil && v.large(data) {
				if err := a.control.budgets.answers.Acquire(ctx, largeAnswer); err != nil {
					return nil, unavailable("too many large answers are under way; try again")
				}
				answers = largeAnswer
			}
			answer, err := v.serve(a, ctx, agent, data)
			return answer, coded(a.explained(err))
		},
		release: func() {
			a.control.budgets.answers.Release(answers)
			release()
			done()
		},
	}, nil
}

// servable returns the deadline of a request, or why the broker cannot serve it.
func (a *Aggregator) servable(v *verb, name, agent string) (until time.Time, err error) {
	switch {
	case v.agent && agent == "":
		return until, badRequest("%s is about one agent; send the request to hook.v1.ctl.%s.<agent>", name, name)
	case v.changes:
		if err := a.notLate(); err != nil {
			return until, err
		}
	}
	return a.due(v.changes, time.Now())
}

// always is the value of large for verbs whose answers may all be large.
func always([]byte) bool { return true }

// ofAVersion reports whether a request to follow the configuration reads a version.
func ofAVersion(data []byte) bool {
	var req schema.FollowRequest
	return readJSON(data, &req) == nil && req.Version > 0
}

// memorising is a deferred answer with a bound of its own. release runs when the answer was sent.
type memorising struct {
	answer  deferred
	release func()
}

// coded gives an error of the memory the code of the contract.
func coded(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*schema.ControlError](err); ok {
		return err
	}
	is := func(errs ...error) bool {
		return slices.ContainsFunc(errs, func(e error) bool { return errors.Is(err, e) })
	}
	code := schema.CodeInternal
	switch {
	case is(queue.ErrInvalid, queue.ErrKey, rounds.ErrInvalid, freezes.ErrInvalid, freezes.ErrFull, sessions.ErrInvalid, objects.ErrTooLarge, objects.ErrInvalid, state.ErrNoPart):
		code = schema.CodeBadRequest
	case is(queue.ErrNotFound, rounds.ErrNone, freezes.ErrNotFrozen, objects.ErrNotFound, state.ErrNoVersion, state.ErrUnreadable):
		code = schema.CodeNotFound
	case is(sessions.ErrTaken, freezes.ErrMoved, state.ErrMoved):
		code = schema.CodeConflict
	case is(queue.ErrTooOld):
		code = schema.CodeTooOld
	case is(queue.ErrFull, queue.ErrAllowance, sessions.ErrNoRoom, queue.ErrUnavailable, rounds.ErrUnavailable, freezes.ErrUnavailable, sessions.ErrUnavailable, objects.ErrUnavailable, objects.ErrFull, record.ErrUnjudgedUnavailable,
		context.DeadlineExceeded, context.Canceled):
		code = schema.CodeUnavailable
	}
	return &schema.ControlError{Code: code, Message: err.Error()}
}

func unavailable(message string) error {
	return &schema.ControlError{Code: schema.CodeUnavailable, Message: message}
}

func notFound(format string, args ...any) error {
	return &schema.ControlError{Code: schema.CodeNotFound, Message: fmt.Sprintf(format, args...)}
}

// queue returns the injection queue, or an error if the broker has no queue.
func (a *Aggregator) queue() (Queue, error) {
	if a.opt.Memory.Queue == nil {
		return nil, unavailable("this broker does not store messages for agents")
	}
	return a.opt.Memory.Queue, nil
}

// currentFor bounds how long a listing waits for the items that other brokers accepted.
const currentFor = time.Second

// pending lists the items that wait, accepted by any broker. If the list may be incomplete, it has
// the items that this broker knows.
func (a *Aggregator) pending(ctx context.Context, agent string, req *schema.PendingRequest) (*schema.PendingAnswer, error) {
	q, err := a.queue()
	if err != nil {
		return nil, err
	}
	const usual, most = 1000, 10_000
	switch {
	case req.Limit < 0 || req.Limit > most:
		return nil, badRequest("limit is %d; use at most %d", req.Limit, most)
	case req.Limit == 0:
		req.Limit = usual
	}
	ctx, cancel := context.WithTimeout(ctx, currentFor)
	defer cancel()
	if err := q.Current(ctx); err != nil {
		a.opt.Logger.Info("the list shows the messages that this broker knows; another broker may have accepted more", "error", err)
	}
	answer := q.Pending(agent, req.Limit)
	return &answer, nil
}

// maxAckRequest is the largest number of events in one request.
const maxAckRequest = 1000

// ack acknowledges events, or renews their leases.
func (a *Aggregator) ack(ctx context.Context, agent string, req *schema.AckRequest) (none, error) {
	q, err := a.queue()
	if err != nil {
		return none{}, err
	}
	if n := len(req.Events); n > maxAckRequest {
		return none{}, badRequest("events has %d entries; acknowledge at most %d at a time", n, maxAckRequest)
	}
	events := make([]string, len(req.Events))
	for i, s := range req.Events {
		if events[i], err = eventIDOf("events", s); err != nil {
			return none{}, err
		}
	}
	if req.Fabric != "" && req.Fabric != a.fabric() || len(events) == 0 {
		return none{}, nil // they are another fabric's: nothing of them is here
	}
	switch {
	case req.Release && req.Hold:
		return none{}, q.Release(ctx, agent, events)
	case req.Release:
		return none{}, badRequest("release needs hold; set both, so that a broker that does not know release acknowledges nothing")
	case req.Hold:
		return none{}, q.Hold(ctx, agent, events)
	}
	a.acknowledged(agent, events)
	if _, events = a.memory.acks.sorted(agent, events); len(events) == 0 {
		return none{}, nil
	}
	if err = q.Ack(ctx, agent, events); err == nil {
		a.memory.acks.note(agent, events)
	}
	return none{}, err
}

// mode returns how answers of others reach the agent, and changes that if the request has a mode.
func (a *Aggregator) mode(ctx context.Context, agent string, req *schema.ModeRequest) (*schema.ModeAnswer, error) {
	q, err := a.queue()
	if err == nil && req.VoteOnly != nil {
		err = q.Note(ctx, agent, "", func(p *schema.Peers) { p.VoteOnly = *req.VoteOnly })
	}
	if err != nil {
		return nil, err
	}
	return &schema.ModeAnswer{VoteOnly: q.Peers(agent, "").VoteOnly}, nil
}

// checkpoint records that the agent starts again with all items so far.
func (a *Aggregator) checkpoint(ctx context.Context, agent string, _ *none) (none, error) {
	q, err := a.queue()
	if err != nil {
		return none{}, err
	}
	return none{}, startsAgain(ctx, q, agent, "")
}

// startsAgain records that the agent, or one of its sessions, starts again. The items accepted
// before, by any broker, are then no longer deferred. For a session it writes only if items wait.
func startsAgain(ctx context.Context, q Queue, agent, session string) error {
	if err := q.Current(ctx); err != nil {
		return err
	}
	if session != "" && !q.Due(agent, session, "") {
		return nil
	}
	last := q.Last()
	return q.Note(ctx, agent, session, func(p *schema.Peers) { p.Checkpoint = max(p.Checkpoint, last) })
}

// roundOf starts, shows or wraps up the agent's round.
func (a *Aggregator) roundOf(ctx context.Context, agent string, req *schema.RoundRequest) (*schema.Round, error) {
	all := a.opt.Memory.Rounds
	if all == nil {
		return nil, unavailable("this broker does not store rounds")
	}
	switch req.Action {
	case "", schema.RoundShow:
		r, ok := all.Get(agent)
		if !ok {
			return nil, notFound("the agent %q has no round; start one", agent)
		}
		return &r, nil
	case schema.RoundStart:
		r, err := all.Start(ctx, agent, req)
		if err == nil && a.config.active.Load().defers(agent) {
			a.release(ctx, agent, "")
		}
		return &r, err
	case schema.RoundWrapUp:
		r, _, err := all.WrapUp(ctx, agent, req)
		if act := a.config.active.Load(); err == nil && act != nil && r.SoftDue() && act.warnsAgent(agent) {
			a.warn(ctx, act, &r, "")
		}
		return &r, err
	}
	return nil, badRequest("round has no action %q; use %s, %s or %s", req.Action, schema.RoundStart, schema.RoundShow, schema.RoundWrapUp)
}
