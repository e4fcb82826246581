package control

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"golang.org/x/sync/semaphore"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/aggregator/internal/intake"
	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// verbTime bounds one request about stored state. A client that gives up after 5 s, as is
	// usual, still receives the error.
	verbTime = 4 * time.Second
	// maxVerbs bounds the bytes of such requests under way; each counts for
	// verbShare at least.
	maxVerbs  = 64 << 20
	verbShare = 64 << 10
	// maxKeeps bounds the requests that bring parts of conversations, so that acknowledgements and
	// messages always find room beside them.
	maxKeeps = maxVerbs / 2
	// maxAnswers bounds the bytes of large answers that are made or being sent. Each counts for
	// largeAnswer: a part of an object and the same part as JSON. A client that requests a large
	// answer waits for its share.
	maxAnswers  = 32 << 20
	largeAnswer = objects.MaxPart * 7 / 3
	// maxSlow bounds the requests under way that may take longer.
	maxSlow = 64
	// maxFreezing bounds the requests under way to freeze or thaw. They have slots of their own, so
	// that no other request delays one. A client repeats its request many times while the broker
	// waits for another broker.
	maxFreezing = 512
)

// A room bounds the control requests under way.
type room struct {
	agents    *semaphore.Weighted // bytes of requests of agents and workers
	operators *semaphore.Weighted // bytes of requests of operators and orchestrators
	parts     *semaphore.Weighted // bytes of requests of agents that bring parts of conversations
	answers   *semaphore.Weighted // bytes of large answers
	slow      slots
	freezing  slots
}

// slots are held by a request each.
type slots chan struct{}

func newRoom() room {
	return room{
		agents: semaphore.NewWeighted(maxVerbs), operators: semaphore.NewWeighted(maxVerbs),
		parts: semaphore.NewWeighted(maxKeeps), answers: semaphore.NewWeighted(maxAnswers),
		slow: make(slots, maxSlow), freezing: make(slots, maxFreezing),
	}
}

// slow returns the slots of requests that may take longer.
func slow(r *room) slots { return r.slow }

// freezing returns the slots of requests to freeze or thaw, and to list the freezes, which the
// commands do first.
func freezing(r *room) slots { return r.freezing }

// take reserves room for a request until the caller calls release.
func (r *room) take(v *verb, data []byte) (release func(), err error) {
	if v.slots != nil {
		s := v.slots(r)
		select {
		case s <- struct{}{}:
			return func() { <-s }, nil
		default:
			return nil, unavailable("%d such requests are already under way; try again", cap(s))
		}
	}
	size := int64(max(len(data), verbShare))
	all := []*semaphore.Weighted{r.agents}
	switch {
	case v.others:
		all[0] = r.operators
	case v.name == schema.VerbKeep:
		all = append(all, r.parts)
	}
	for i, s := range all {
		if !s.TryAcquire(size) {
			free(all[:i], size)
			return nil, unavailable("too many requests are already under way; try again")
		}
	}
	return func() { free(all, size) }, nil
}

func free(all []*semaphore.Weighted, size int64) {
	for _, s := range all {
		s.Release(size)
	}
}

// A job is an accepted request. release runs when its answer was sent.
type job struct {
	conn    *nats.Conn
	answer  func(context.Context) (any, error)
	release func()
}

// accept finds room for a request, or refuses it.
func (c *Control) accept(r micro.Request) (*job, error) {
	name, agent, err := bus.ParseControlSubject(r.Subject())
	if err != nil {
		return nil, badRequest("%v", err)
	}
	v := c.verbs[name]
	done, err := c.charge(v, agent, r.Reply()) // before the request is read
	if err != nil {
		return nil, err
	}
	data := r.Data()
	var release func()
	until, err := c.servable(v, agent, data)
	if err == nil {
		release, err = c.room.take(v, data)
	}
	if err != nil {
		done()
		return nil, err
	}
	j := &job{conn: c.opt.Control}
	if !v.others {
		j.conn = c.opt.Requests
	}
	var answers int64
	j.answer = func(ctx context.Context) (any, error) {
		if v.slots == nil {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, until)
			defer cancel()
		}
		if v.large != nil && v.large(data) {
			if err := c.room.answers.Acquire(ctx, largeAnswer); err != nil {
				return nil, unavailable("too many large answers are under way; try again")
			}
			answers = largeAnswer
		}
		answer, err := v.serve(c, ctx, agent, data)
		if !v.ownCodes {
			err = coded(c.explained(err))
		}
		return answer, err
	}
	j.release = func() {
		c.room.answers.Release(answers)
		release()
		done()
	}
	return j, nil
}

// charge counts a request towards the limits of an agent. One about no particular agent comes from
// an operator and has no limit here. One that every agent's side may send counts for the inbox of
// its reply.
func (c *Control) charge(v *verb, agent, reply string) (done func(), err error) {
	switch {
	case v.anybody:
		return c.opt.Limits.Request(intake.Inbox, bus.InboxName(reply))
	case agent == "" || v.slots != nil:
		return func() {}, nil
	case v.others:
		return c.opt.Limits.Request(intake.About, agent)
	}
	return c.opt.Limits.Request(intake.Own, agent)
}

// servable returns the deadline of a request, or why the broker cannot serve it.
func (c *Control) servable(v *verb, agent string, data []byte) (until time.Time, err error) {
	changes := v.changes != nil && v.changes(data)
	switch {
	case v.agent && agent == "":
		return until, badRequest("%s is about one agent; send the request to hook.v1.ctl.%s.<agent>", v.name, v.name)
	case v.noAgent != "" && agent != "":
		return until, badRequest("%s; send the request to hook.v1.ctl.%s._", v.noAgent, v.name)
	case changes:
		if err := c.notLate(); err != nil {
			return until, err
		}
	}
	return c.due(changes && v.slots == nil, time.Now())
}

// notLate refuses a request to change something if this broker may have been stopped or cut off. The
// request may then have waited longer than its client, and other brokers may have changed the
// configuration since.
func (c *Control) notLate() error {
	if c.opt.Lease != nil && c.Version() > 0 && !c.opt.Lease.Fresh(time.Now()) {
		return unavailable("this broker was cut off from the fabric when the request arrived; nothing changed, try again")
	}
	return nil
}
