package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/bus/state/freezes"
	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/bus/state/record"
	"github.com/hookfabric/hookfabric/bus/state/rounds"
	"github.com/hookfabric/hookfabric/bus/state/sessions"
	"github.com/hookfabric/hookfabric/schema"
)

// A verb is a kind of control request.
type verb struct {
	name string
	// agent marks a request about one agent, on the agent's subject. noAgent is why a request cannot
	// be about one; empty: it can.
	agent   bool
	noAgent string
	// others marks a request that the agent itself does not send, and anybody one about no particular
	// agent, which every agent's side sends.
	others, anybody bool
	// changes reports whether a request changes something and must not run long after it was sent;
	// nil: it never does.
	changes func(data []byte) bool
	// large reports whether the answer may be large; nil: it never is.
	large func(data []byte) bool
	// slots are those of a request that may take longer than others; nil: it is bounded by its bytes
	// and by verbTime.
	slots func(r *room) slots
	// ownCodes marks a request whose errors have a code; others get that of the store's error.
	ownCodes bool
	serve    func(c *Control, ctx context.Context, agent string, data []byte) (any, error)
}

// verbs returns all control verbs, in the order of the contract.
func verbs() []verb {
	const (
		ofAll     = "the configuration is not of one agent"
		asksAll   = "the policy is not of one agent"
		byDigest  = "a part is named by its digest alone"
		namesThem = "the request names its agents"
	)
	return []verb{
		{name: schema.VerbStatus, others: true, slots: slow, ownCodes: true, serve: reading((*Control).status)},
		{name: "config", others: true, noAgent: ofAll, changes: configures, slots: slow, ownCodes: true, serve: reading((*Control).configure)},
		{name: "hooks", others: true, changes: registers, slots: slow, ownCodes: true, serve: reading((*Control).hooks)},
		{name: schema.VerbInject, others: true, changes: always, serve: reading((*Control).inject)},
		{name: schema.VerbPending, others: true, serve: reading((*Control).pending)},
		{name: schema.VerbWithdraw, others: true, changes: always, serve: reading((*Control).withdrawItem)},
		{name: schema.VerbAck, agent: true, serve: reading((*Control).ack)},
		{name: schema.VerbDrain, agent: true, changes: always, serve: reading((*Control).drain)},
		{name: schema.VerbFetch, agent: true, large: always, serve: reading((*Control).fetch)},
		{name: schema.VerbAnswer, agent: true, changes: always, serve: reading((*Control).answerOf)},
		{name: schema.VerbRelay, agent: true, others: true, changes: always, serve: reading((*Control).relay)},
		{name: schema.VerbMode, agent: true, changes: always, serve: reading((*Control).mode)},
		{name: schema.VerbCheckpoint, agent: true, changes: always, serve: reading((*Control).checkpoint)},
		{name: schema.VerbRound, agent: true, others: true, changes: always, serve: reading((*Control).roundOf)},
		{name: schema.VerbPolicy, anybody: true, noAgent: asksAll, serve: reading((*Control).policy)},
		{name: schema.VerbRecord, agent: true, serve: reading((*Control).recordUnjudged)},
		{name: schema.VerbKeep, agent: true, serve: reading((*Control).keepPart)},
		{name: schema.VerbPart, noAgent: byDigest, large: always, serve: reading((*Control).storedPart)},
		{name: schema.VerbFollow, noAgent: ofAll, large: ofAVersion, serve: reading((*Control).follow)},
		{name: schema.VerbFreeze, others: true, noAgent: namesThem, changes: names, slots: freezing, serve: reading((*Control).freeze)},
		{name: schema.VerbThaw, others: true, noAgent: namesThem, changes: always, slots: freezing, serve: reading((*Control).thaw)},
	}
}

// always is for verbs whose requests all change something, or whose answers may all be large.
func always([]byte) bool { return true }

// ofAVersion reports whether a request to follow the configuration reads a version.
func ofAVersion(data []byte) bool {
	return holds(data, func(req *schema.FollowRequest) bool { return req.Version > 0 })
}

func configures(data []byte) bool {
	return holds(data, func(req *schema.ConfigRequest) bool {
		return req.Action != schema.ActionShow && req.Action != schema.ActionHistory
	})
}

func registers(data []byte) bool {
	return holds(data, func(req *schema.HooksRequest) bool { return req.Action != schema.ActionList })
}

// names reports whether a request names agents to freeze or thaw. Without them it lists the freezes.
func names(data []byte) bool {
	return holds(data, func(req *schema.FreezeRequest) bool { return req.Agents != "" })
}

// holds reports whether a request is readable and meets a condition.
func holds[Q any](data []byte, condition func(*Q) bool) bool {
	req := new(Q)
	return readJSON(data, req) == nil && condition(req)
}

// reading reads a request before it is served.
func reading[Q, A any](serve func(*Control, context.Context, string, *Q) (A, error)) func(*Control, context.Context, string, []byte) (any, error) {
	return func(c *Control, ctx context.Context, agent string, data []byte) (any, error) {
		req := new(Q)
		if err := readJSON(data, req); err != nil {
			return nil, err
		}
		return serve(c, ctx, agent, req)
	}
}

// readJSON reads the body of a request; an empty one is {}.
func readJSON(data []byte, into any) error {
	if len(data) == 0 {
		return nil
	}
	if err := schema.Unmarshal(data, into); err != nil {
		return badRequest("cannot read the request: %v", err)
	}
	return nil
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

func noConfigs() error { return unavailable("this broker does not store the configuration") }

func noActive() error {
	return unavailable("no configuration is active; publish one with 'broker apply FILE'")
}

func badRequest(format string, args ...any) error {
	return controlError(schema.CodeBadRequest, format, args...)
}

func unavailable(format string, args ...any) error {
	return controlError(schema.CodeUnavailable, format, args...)
}

func notFound(format string, args ...any) error {
	return controlError(schema.CodeNotFound, format, args...)
}

func conflict(format string, args ...any) error {
	return controlError(schema.CodeConflict, format, args...)
}

func controlError(code, format string, args ...any) error {
	return &schema.ControlError{Code: code, Message: fmt.Sprintf(format, args...)}
}
