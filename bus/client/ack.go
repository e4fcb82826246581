package client

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	// ackersMost bounds the acknowledgements under way.
	ackersMost = 16
	// holdEvery is when a lease of 30 s is renewed, so that two renewals may fail.
	holdEvery = 10 * time.Second
)

// Handed says that the agent has what the verdict of an event brought; events
// that brought nothing are no matter. The fabric hears of it with the agent's
// next question, or by a request of its own 2 s later, and again until it has
// confirmed it. Never say it before the agent has it: what is acknowledged does
// not come again.
func (c *Client) Handed(event string) {
	l := c.ledger
	l.mu.Lock()
	if h := l.take(event); h != nil {
		l.recall(*h)
	}
	l.mu.Unlock()
	c.wakeAcker()
}

// Brought is what the verdict of an event brought from the queue, and is not
// said to be handed over yet. ok is false if that is nothing.
func (c *Client) Brought(event string) (h Handover, ok bool) {
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	if given := c.ledger.given[event]; given != nil {
		return *given, true
	}
	return Handover{}, false
}

// Recall tells the client what a process before it handed over to an agent and
// could not acknowledge. Of several fabrics, that counts which answers.
func (c *Client) Recall(kept ...Handover) {
	for _, h := range kept {
		var events []string
		for _, e := range h.Events {
			if id, ok := acknowledgeable(e); ok {
				events = append(events, id)
			}
		}
		h.Events = events
		c.ledger.keep(&h)
	}
}

// Noted is what is still to be acknowledged for an agent. Its sequences are not
// filled in.
func (c *Client) Noted(agent string) Handover {
	l := c.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	h := Handover{Fabric: l.fabric, Agent: agent}
	if a := l.accounts[agent]; a != nil {
		h.Events = slices.Clone(a.noted)
	}
	return h
}

// Ack says at once that the agent has what the verdicts of events brought, and
// returns when that is known for ever. After an error the events are noted, as
// [Client.Handed] does. One whose verdict lacks what could not be fetched is
// left out: it comes again.
func (c *Client) Ack(ctx context.Context, agent string, events ...string) error {
	said, err := c.ledger.say(agent, events)
	if err == nil {
		err = c.ack(ctx, agent, said)
	}
	if err != nil {
		c.wakeAcker()
	}
	return err
}

// say notes events, and returns those that may be acknowledged.
func (l *ledger) say(agent string, events []string) (said []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fabric == "" {
		return nil, errNoVerdict
	}
	for _, e := range events {
		h := l.take(e)
		if h == nil {
			id, ok := acknowledgeable(e)
			if !ok {
				return nil, fmt.Errorf("%w: %.64q is no event's id, which is a UUID", ErrInvalid, e)
			}
			h = &Handover{Fabric: l.fabric, Agent: agent, Events: []string{id}}
		}
		l.recall(*h)
		said = append(said, h.Events...)
	}
	return said, nil
}

// AckKept says at once that an agent has what a process before this one handed
// over, before any fabric has answered this one. Another fabric than that of the
// events changes nothing.
func (c *Client) AckKept(ctx context.Context, h Handover) error {
	for part := range slices.Chunk(h.Events, bus.MaxAcks) {
		if err := c.patiently(ctx, about{schema.VerbAck, h.Agent, controlTry}, &schema.AckRequest{Fabric: h.Fabric, Events: part}, nil); err != nil {
			return fmt.Errorf("acknowledging what %s was given before: %w", h.Agent, err)
		}
	}
	return nil
}

// Flush acknowledges all that is noted. A process that ends calls it.
func (c *Client) Flush(ctx context.Context) error {
	l := c.ledger
	l.mu.Lock()
	all := make(map[string][]string, len(l.accounts))
	for agent, a := range l.accounts {
		if len(a.noted) > 0 {
			all[agent] = slices.Clone(a.noted)
		}
	}
	l.mu.Unlock()
	for agent, events := range all {
		if err := c.ack(ctx, agent, events); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) ack(ctx context.Context, agent string, events []string) error {
	for part := range slices.Chunk(events, bus.MaxAcks) {
		if err := c.say(ctx, agent, part, false); err != nil {
			return fmt.Errorf("acknowledging what %s was given: %w", agent, err)
		}
		c.ledger.mu.Lock()
		c.ledger.confirm(agent, part)
		c.ledger.mu.Unlock()
	}
	return nil
}

// Hold renews the leases of events whose verdicts the caller still holds back.
// A lease lasts 30 s; renew it every 10 s.
func (c *Client) Hold(ctx context.Context, agent string, events ...string) error {
	for part := range slices.Chunk(events, bus.MaxAcks) {
		if err := c.say(ctx, agent, part, true); err != nil {
			return fmt.Errorf("holding what %s is to be given: %w", agent, err)
		}
	}
	return nil
}

// say sends one acknowledgement, or one renewal.
func (c *Client) say(ctx context.Context, agent string, events []string, hold bool) error {
	c.ledger.mu.Lock()
	fabric := c.ledger.fabric
	c.ledger.mu.Unlock()
	if fabric == "" {
		return errNoVerdict
	}
	ctx, cancel := context.WithTimeout(ctx, controlTry)
	defer cancel()
	return c.control(ctx, about{verb: schema.VerbAck, agent: agent}, &schema.AckRequest{Fabric: fabric, Events: events, Hold: hold}, nil)
}

// holding renews an event's lease until stop is called.
func (c *Client) holding(ctx context.Context, agent, event string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c.rest(ctx, holdEvery) {
			if err := c.Hold(ctx, agent, event); err != nil {
				c.log.Debug("a lease was not renewed", "agent", agent, "event", event, "error", err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// wakeAcker has somebody look at what is noted, now or when it is due.
func (c *Client) wakeAcker() {
	c.mu.Lock()
	if !c.acking && !isClosed(c.closed) {
		c.acking = true
		c.background.Go(c.acker)
	}
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default: // it is awake
	}
}

// acker sends what was noted and did not ride on a question in time.
func (c *Client) acker() {
	slots := make(chan struct{}, ackersMost)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-c.closed:
			return
		case <-c.wake:
		case <-timer.C:
		}
		jobs, next, dropped := c.ledger.due(time.Now())
		if dropped > 0 {
			c.log.Warn("acknowledgements were dropped, because too many waited; what they were for may come again", "count", dropped)
		}
		for agent, events := range jobs {
			select {
			case slots <- struct{}{}:
			case <-c.closed:
				return
			}
			c.background.Go(func() {
				defer func() { <-slots; c.wakeAcker() }()
				err := c.ack(c.life, agent, events)
				c.ledger.tried(agent, err)
				if err != nil {
					c.log.Debug("an acknowledgement failed; it is repeated", "agent", agent, "events", len(events), "error", err)
				}
			})
		}
		if !next.IsZero() {
			timer.Reset(time.Until(next))
		}
	}
}

// due are the agents whose acknowledgements have waited for long enough, and
// when the next ones have.
func (l *ledger) due(now time.Time) (jobs map[string][]string, next time.Time, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	dropped, l.dropped = l.dropped, 0
	if l.noted == 0 {
		return nil, next, dropped
	}
	for agent, a := range l.accounts {
		switch {
		case a.busy || a.due.IsZero():
		case !a.due.After(now):
			a.busy = true
			if jobs == nil {
				jobs = map[string][]string{}
			}
			jobs[agent] = slices.Clone(a.noted)
		case next.IsZero() || a.due.Before(next):
			next = a.due
		}
	}
	return jobs, next, dropped
}

// tried notes how a request went, and when there is to be another one.
func (l *ledger) tried(agent string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[agent]
	if a == nil {
		return
	}
	a.busy = false
	switch {
	case len(a.noted) == 0:
		a.settled()
	case err == nil: // what came in the meantime
		a.wait, a.due = 0, time.Now().Add(ackAfter)
	default:
		a.wait = min(max(ackRetry, 2*a.wait), ackRetryMost)
		a.due = time.Now().Add(jitter(a.wait))
	}
}
