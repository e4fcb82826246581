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
	// ackersMost limits the acknowledgements in progress.
	ackersMost = 16
	// holdEvery is the interval of renewals. A lease lasts 30 s, so two renewals may
	// fail.
	holdEvery = 10 * time.Second
)

// Handed notes that the agent has read what the verdict of an event delivered. The client
// acknowledges it with the agent's next Ask, or 2 s later in a request of its own, and repeats
// that until the fabric confirms it. Call Handed only after the agent has read it, because the
// fabric does not deliver acknowledged items again. Events that delivered nothing have no
// effect.
func (c *Client) Handed(event string) {
	l := c.deliveryLog
	l.mu.Lock()
	if h := l.takeReceived(event); h != nil {
		l.restoreLocked(*h)
	}
	l.mu.Unlock()
	c.wakeAcker()
}

// Brought returns the queued items in the verdict of an event that are not marked as delivered
// yet. It returns false if there are no such items.
func (c *Client) Brought(event string) (h Handover, ok bool) {
	c.deliveryLog.mu.Lock()
	defer c.deliveryLog.mu.Unlock()
	if given := c.deliveryLog.given[event]; given != nil {
		return *given, true
	}
	return Handover{}, false
}

// Recall restores what an earlier process delivered to an agent and could not acknowledge. If
// kept names several fabrics, the one that answers counts.
func (c *Client) Recall(kept ...Handover) {
	for _, h := range kept {
		var events []string
		for _, e := range h.Events {
			if id, ok := bus.CanonicalUUID(e); ok {
				events = append(events, id)
			}
		}
		h.Events = events
		c.deliveryLog.restore(&h)
	}
}

// Noted returns the events still to be acknowledged for an agent. It does not fill in the
// sequences.
func (c *Client) Noted(agent string) Handover {
	l := c.deliveryLog
	l.mu.Lock()
	defer l.mu.Unlock()
	h := Handover{Fabric: l.fabric, Agent: agent}
	if a := l.agents[agent]; a != nil {
		h.Events = slices.Clone(a.noted)
	}
	return h
}

// Ack acknowledges at once that the agent has read what the verdicts of events delivered. It
// returns when the fabric has stored the acknowledgement. After an error the client retries
// later, as after [Client.Handed]. Ack skips an event with content that could not be fetched,
// so that the fabric delivers it again.
func (c *Client) Ack(ctx context.Context, agent string, events ...string) error {
	acks, err := c.deliveryLog.noteEvents(agent, events)
	if err == nil {
		err = c.ack(ctx, agent, acks)
	}
	if err != nil {
		c.wakeAcker()
	}
	return err
}

// noteEvents marks events as read and returns those that may be acknowledged.
func (l *deliveryLog) noteEvents(agent string, events []string) (acks []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fabric == "" {
		return nil, errNoVerdict
	}
	for _, e := range events {
		h := l.takeReceived(e)
		if h == nil {
			id, ok := bus.CanonicalUUID(e)
			if !ok {
				return nil, fmt.Errorf("%w: %.64q is not an event id; write a UUID", ErrInvalid, e)
			}
			h = &Handover{Fabric: l.fabric, Agent: agent, Events: []string{id}}
		}
		l.restoreLocked(*h)
		acks = append(acks, h.Events...)
	}
	return acks, nil
}

// AckKept acknowledges at once what an earlier process delivered to an agent. It also works
// before any fabric has answered this process. A fabric other than that of the events ignores
// it.
func (c *Client) AckKept(ctx context.Context, h Handover) error {
	for part := range slices.Chunk(h.Events, bus.MaxAcks) {
		if err := c.controlRetrying(ctx, controlTarget{schema.VerbAck, h.Agent, controlTry}, &schema.AckRequest{Fabric: h.Fabric, Events: part}, nil); err != nil {
			return fmt.Errorf("acknowledging earlier deliveries to %s: %w", h.Agent, err)
		}
	}
	return nil
}

// Flush acknowledges all noted events. Call it before [Client.Close].
func (c *Client) Flush(ctx context.Context) error {
	l := c.deliveryLog
	l.mu.Lock()
	all := make(map[string][]string, len(l.agents))
	for agent, a := range l.agents {
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
		if err := c.sendAck(ctx, agent, &schema.AckRequest{Events: part}); err != nil {
			return fmt.Errorf("acknowledging deliveries to %s: %w", agent, err)
		}
		c.deliveryLog.mu.Lock()
		c.deliveryLog.confirm(agent, part)
		c.deliveryLog.mu.Unlock()
	}
	return nil
}

// Hold renews the leases of events whose verdicts the caller has not delivered yet. A lease
// lasts 30 s; renew it every 10 s.
func (c *Client) Hold(ctx context.Context, agent string, events ...string) error {
	return c.lease(ctx, agent, events, false)
}

// Release ends the leases of events whose verdicts the caller will not deliver. Their items are
// then due again at once, not only when the leases expire.
func (c *Client) Release(ctx context.Context, agent string, events ...string) error {
	return c.lease(ctx, agent, events, true)
}

// lease renews or ends leases.
func (c *Client) lease(ctx context.Context, agent string, events []string, release bool) error {
	for part := range slices.Chunk(events, bus.MaxAcks) {
		if err := c.sendAck(ctx, agent, &schema.AckRequest{Events: part, Hold: true, Release: release}); err != nil {
			verb := "holding"
			if release {
				verb = "releasing"
			}
			return fmt.Errorf("%s the leases of %s: %w", verb, agent, err)
		}
	}
	return nil
}

// sendAck sends an acknowledgement, a renewal or a release.
func (c *Client) sendAck(ctx context.Context, agent string, request *schema.AckRequest) error {
	c.deliveryLog.mu.Lock()
	fabric := c.deliveryLog.fabric
	c.deliveryLog.mu.Unlock()
	if fabric == "" {
		return errNoVerdict
	}
	ctx, cancel := context.WithTimeout(ctx, controlTry)
	defer cancel()
	request.Fabric = fabric
	return c.control(ctx, controlTarget{verb: schema.VerbAck, agent: agent}, request, nil)
}

// holding renews an event's lease until stop is called.
func (c *Client) holding(ctx context.Context, agent, event string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c.sleep(ctx, holdEvery) {
			if err := c.Hold(ctx, agent, event); err != nil {
				c.log.Debug("a lease was not renewed", "agent", agent, "event", event, "error", err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// wakeAcker makes the acker check for due acknowledgements, and starts it if it does not
// run.
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

// acker sends acknowledgements that no event carried in time.
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
		jobs, next, dropped := c.deliveryLog.due(time.Now())
		if dropped > 0 {
			c.log.Warn("acknowledgements were dropped, because too many waited; their items may be delivered again", "count", dropped)
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
				c.deliveryLog.recordAttempt(agent, err)
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

// due returns the agents with due acknowledgements, and when the next ones are due.
func (l *deliveryLog) due(now time.Time) (jobs map[string][]string, next time.Time, dropped int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	dropped, l.dropped = l.dropped, 0
	if l.noted == 0 {
		return nil, next, dropped
	}
	for agent, a := range l.agents {
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

// recordAttempt records the result of a request and schedules the next one.
func (l *deliveryLog) recordAttempt(agent string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.agents[agent]
	if a == nil {
		return
	}
	a.busy = false
	switch {
	case len(a.noted) == 0:
		a.clearSchedule()
	case err == nil: // more events were noted during the request
		a.wait, a.due = 0, time.Now().Add(ackAfter)
	default:
		a.wait = min(max(ackRetry, 2*a.wait), ackRetryMost)
		a.due = time.Now().Add(jitter(a.wait))
	}
}
