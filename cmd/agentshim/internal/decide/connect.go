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

// connected returns the connection; nil: there is no connection yet.
func (j *Judge) connected() *client.Client {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.line
}

// dialFor limits one attempt to connect.
const dialFor = 5 * time.Second

// An attempt is one try to connect. All goroutines that need the connection share its result:
// one try after another would multiply the wait for a silent server.
type attempt struct {
	ended chan struct{} // closed when line and err are set
	line  *client.Client
	err   error
}

// dial returns the connection, and waits for the current attempt. It returns before ctx ends, to
// leave time for an answer without a verdict.
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

// reach starts an attempt to connect without waiting for it. The caller can read the stored
// policy until the server has answered twice.
func (j *Judge) reach(ctx context.Context) {
	j.mu.Lock()
	connected := j.line != nil
	j.attempt(ctx)
	j.mu.Unlock()
	if !connected {
		runtime.Gosched() // on one processor, the attempt would otherwise start only when the caller waits
	}
}

// attempt returns the current attempt. It starts one if there is no attempt and no connection.
// The caller holds the lock.
func (j *Judge) attempt(ctx context.Context) *attempt {
	if j.line == nil && j.dialling == nil && ctx.Err() == nil {
		a := &attempt{ended: make(chan struct{}), err: errPanicked}
		j.dialling = a
		j.dials.Go(j.guarded(func() { j.connect(a) }))
	}
	return j.dialling
}

// connect connects, and wakes the goroutines that wait for the attempt.
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
