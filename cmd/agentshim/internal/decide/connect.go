package decide

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// maxAgents limits the deliveries of a resident judge, to as many agents as its client remembers.
const maxAgents = 10_000

// delivery returns the delivery of an agent, over the judge's connection.
func (j *Judge) delivery(ctx context.Context, agent string) (*Delivery, error) {
	j.mu.Lock()
	before, known := j.deliveries[agent]
	j.mu.Unlock()
	if !known {
		before = j.link.delivery(agent)
	}
	line, err := j.dial(ctx)
	if err != nil {
		return nil, err
	}
	if known {
		return before, nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if g := j.deliveries[agent]; g != nil {
		return g, nil
	}
	if len(j.deliveries) >= maxAgents {
		j.forget()
	}
	before.connect(line)
	j.deliveries[agent] = before
	return before, nil
}

// forget removes one delivery, to make space for another agent. The caller holds the lock.
func (j *Judge) forget() {
	for agent, g := range j.deliveries {
		g.store(g.Client.Noted(agent))
		delete(j.deliveries, agent)
		return
	}
}

// connected is the connection, if there is one so far.
func (j *Judge) connected() *client.Client {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.line
}

// dialFor bounds one attempt to make the connection.
const dialFor = 5 * time.Second

// An attempt is one to make the connection. All who need it share what comes of
// it: each after the other would wait for the same silence.
type attempt struct {
	ended chan struct{} // closed when what follows is there
	line  *client.Client
	err   error
}

// dial is the connection. It leaves time to say that there is none.
func (j *Judge) dial(ctx context.Context) (*client.Client, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-schema.Margin(time.Until(end))/2))
		defer cancel()
	}
	j.mu.Lock()
	line, a := j.line, j.attempt(ctx)
	j.mu.Unlock()
	if line != nil {
		return line, nil
	}
	if a != nil {
		select {
		case <-a.ended:
			return a.line, a.err
		case <-ctx.Done():
		}
	}
	return nil, fmt.Errorf("%w: %w: no connection to NATS at %s within the time limit; start a broker there or name another server",
		client.ErrUnreachable, context.Cause(ctx), bus.RedactURL(j.link.URL))
}

// reach has the connection come about while the caller does something else: until the
// server has answered twice, there is time to read what is known.
func (j *Judge) reach(ctx context.Context) {
	j.mu.Lock()
	connected := j.line != nil
	j.attempt(ctx)
	j.mu.Unlock()
	if !connected {
		runtime.Gosched() // a process on one processor has only taken note of it
	}
}

// attempt is the one under way, and begins one where none is and one is needed. The
// caller holds the lock.
func (j *Judge) attempt(ctx context.Context) *attempt {
	if j.line == nil && j.dialling == nil && ctx.Err() == nil {
		a := &attempt{ended: make(chan struct{}), err: errPanicked}
		j.dialling = a
		j.dials.Go(j.guarded(func() { j.connect(a) }))
	}
	return j.dialling
}

// connect makes the connection, and wakes those who wait for it.
func (j *Judge) connect(a *attempt) {
	defer func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.line, j.dialling = a.line, nil
		close(a.ended)
	}()
	ctx, cancel := context.WithTimeout(j.background.ctx, dialFor)
	defer cancel()
	a.line, a.err = j.link.dial(ctx)
}
