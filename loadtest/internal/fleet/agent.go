package fleet

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/loadtest/internal/load"
	"github.com/hookfabric/hookfabric/loadtest/internal/scenario"
	"github.com/hookfabric/hookfabric/schema"
)

// agent is one agent. Its calls begin at their times, even if earlier ones are not answered
// yet.
type agent struct {
	*driver
	name     string
	c        connection
	reads    recipient
	arrivals *load.Arrivals
	random   *rand.Rand // only next uses it: one call after the other
	begin    time.Time
}

// next schedules the next call for when it is due. If leave is set, it skips calls that are
// past, because an earlier process has made them.
func (a *agent) next(ctx context.Context, leave bool) {
	for {
		moment, ok := a.arrivals.Next()
		if !ok {
			return
		}
		c, tool := a.mix.draw(a.random, a.Scenario.Shares), a.toolTime()
		due := a.begin.Add(moment)
		if leave && due.Before(time.Now()) {
			continue
		}
		a.schedule.Add(due, func(due time.Time, sent bool) {
			a.next(ctx, false)
			a.use(ctx, use{call: c, due: due, sent: sent, tool: tool})
		})
		return
	}
}

func (a *agent) toolTime() time.Duration {
	return time.Duration(a.random.ExpFloat64() * float64(a.Scenario.ToolTime))
}

// use is one use of a tool.
type use struct {
	*call
	due  time.Time
	sent bool
	tool time.Duration
}

// use asks whether the tool may be used. If it may, it schedules the event for the return
// of the tool.
func (a *agent) use(ctx context.Context, u use) {
	counted := load.Call{Kind: string(u.class), Apart: u.class == slow, Due: u.due, Started: time.Now()}
	if !u.sent {
		a.unsent(u.call, counted)
		return
	}
	v, got := a.ask(ctx, u.call, u.before(), &counted)
	if !got {
		return
	}
	a.oracle.before(u.call, v)
	a.noted(a.reads.Take(v.verdict))
	if schema.PreToolUse.Blocks(v.verdict.Decision) || u.deny {
		return
	}
	input := u.input
	if v.verdict.UpdatedInput != nil {
		input = v.verdict.UpdatedInput
	}
	a.schedule.Add(counted.Ended.Add(u.tool), func(due time.Time, sent bool) {
		a.used(ctx, u.call, input, load.Call{Kind: afterwards, Due: due, Started: time.Now(), Unsent: !sent})
	})
}

// used sends the event after the tool.
func (a *agent) used(ctx context.Context, c *call, input jsontext.Value, counted load.Call) {
	if counted.Unsent {
		a.unsent(c, counted)
		return
	}
	e, err := c.after(input)
	if err != nil {
		a.noted(err)
		return
	}
	v, got := a.ask(ctx, c, e, &counted)
	if !got {
		return
	}
	a.oracle.after(c, v)
	a.noted(a.reads.Take(v.verdict))
	a.noted(a.reads.Acknowledged())
}

// unsent counts a call that was not sent before its deadline. It does not count a call that
// had time left when the driver ended, because the result of that call is unknown.
func (a *agent) unsent(c *call, counted load.Call) {
	if a.ending.Load() && time.Since(counted.Due) < a.Scenario.Deadline.Std() {
		return
	}
	counted.Unsent, counted.Ended = true, counted.Due.Add(a.Scenario.Deadline.Std())
	a.recorder.Count(counted)
	a.oracle.unsent(c)
}

// send asks about an event of the agent, within the deadline of a call.
func (a *agent) send(ctx context.Context, e *schema.Event, at time.Time) (*schema.Verdict, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	e.EventID, e.AgentID, e.SessionID, e.Timestamp = id.String(), a.name, "s-"+a.name, at
	within, cancel := context.WithTimeout(ctx, a.Scenario.Deadline.Std())
	defer cancel()
	return a.c.Ask(within, e)
}

// ask sends an event within the deadline of a call, and counts the call.
func (a *agent) ask(ctx context.Context, c *call, e *schema.Event, counted *load.Call) (answer, bool) {
	deadline := a.Scenario.Deadline.Std()
	v, err := a.send(ctx, e, counted.Started)
	counted.Ended, counted.Failed = time.Now(), err != nil
	took := counted.Ended.Sub(counted.Started)
	if err != nil && ctx.Err() != nil && took < deadline {
		a.oracle.cutOff()
		return answer{}, false
	}
	if err != nil {
		counted.Ended = waited(counted, deadline)
	}
	a.recorder.Count(*counted)
	if err != nil {
		a.oracle.unanswered(c, err, took)
		return answer{}, false
	}
	return answer{verdict: v, took: took}, true
}

// waited returns the end of the wait of a call without an answer: its deadline, even if the
// error came earlier.
func waited(c *load.Call, deadline time.Duration) time.Time {
	if until := c.Due.Add(deadline); until.After(c.Ended) {
		return until
	}
	return c.Ended
}

// look asks about a tool that no hook matches, to get the items that wait for the agent.
func (a *agent) look(ctx context.Context) {
	t := a.mix[unmatched][0]
	v, err := a.send(ctx, &schema.Event{HookType: schema.PostToolUse, ToolName: t.Name, ToolInput: t.Input, ToolOutput: t.Output}, time.Now())
	if err != nil {
		return // the caller asks again while items wait for the agent
	}
	a.noted(a.reads.Take(v))
	a.noted(a.reads.Acknowledged())
}

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
