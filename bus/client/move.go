package client

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
)

// A client leaves a server that is about to stop while no call is in progress. A call in
// progress would be asked a second time, and hooks that must not run twice would count as
// failed. So new calls wait a little. If the earlier calls take longer, the client tries
// again later.
const (
	pauseFor   = 400 * time.Millisecond
	pauseAgain = 100 * time.Millisecond
	// moveWithin is how long the server may take to stop.
	moveWithin = 5 * time.Second
	// leaveAfter is how long a server must report that no aggregator listens before the
	// client leaves it, and leaveAgain the minimum time between two such moves.
	leaveAfter = 2 * time.Second
	leaveAgain = 10 * time.Second
)

// leaving handles the server's notice that it is about to stop.
func (c *Client) leaving(nc *nats.Conn) {
	c.spawn(func() {
		ctx, cancel := context.WithTimeout(c.life, moveWithin)
		defer cancel()
		_, lost, _ := c.connection()
		for ctx.Err() == nil && !isClosed(lost) && !c.move(ctx, nc, lost) && c.sleep(ctx, pauseAgain) {
		}
	})
}

// move goes to another server if no call is in progress soon, and reports whether it did.
// It waits until lost, the current connection, is closed: otherwise a new call would
// mistake the loss for one of its own.
func (c *Client) move(ctx context.Context, nc *nats.Conn, lost chan struct{}) bool {
	idle := c.pauseCalls()
	defer c.resumeCalls()
	t := time.NewTimer(pauseFor)
	defer t.Stop()
	select {
	case <-idle:
	case <-t.C:
		return false
	case <-ctx.Done():
		return false
	}
	if err := nc.ForceReconnect(); err != nil {
		c.log.Warn("the server is about to stop, and another one cannot be reached", "error", err)
		return true
	}
	select {
	case <-lost:
	case <-ctx.Done():
	}
	return true
}

// leaveServer goes from a server on which no aggregator answers to another known one,
// because the server or its broker may be cut off. Calls in progress on that connection,
// which closes lost, are asked again.
func (c *Client) leaveServer(lost chan struct{}, why error) {
	c.mu.Lock()
	stays := lost != c.lost || isClosed(lost) || len(c.nc.Servers()) < 2 || time.Since(c.leftAt) < leaveAgain
	if !stays {
		c.leftAt = time.Now()
	}
	c.mu.Unlock()
	if stays {
		return
	}
	c.log.Warn("no aggregator answers through this server; trying another one", "server", bus.RedactURL(c.nc.ConnectedUrl()), "cause", why)
	if err := c.nc.ForceReconnect(); err != nil {
		c.log.Warn("cannot disconnect from the server", "error", err)
	}
}

// pauseCalls keeps new calls from starting. idle is closed when no call is in progress.
func (c *Client) pauseCalls() (idle chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused, c.idle = make(chan struct{}), make(chan struct{})
	if idle = c.idle; len(c.waiting) == 0 {
		close(idle)
		c.idle = nil
	}
	return idle
}

// resumeCalls lets calls start again.
func (c *Client) resumeCalls() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.paused)
	c.paused, c.idle = nil, nil
}

// begin counts a call as in progress, after calls may start.
func (c *Client) begin(ctx context.Context, a *ask) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if paused := c.paused; paused != nil {
		c.mu.Unlock()
		select {
		case <-paused:
		case <-ctx.Done():
		case <-c.closed:
		}
		c.mu.Lock()
	}
	c.waiting[a.token] = a
}

// ended counts a call as ended.
func (c *Client) ended(a *ask, answered bool) {
	defer c.returnInbox(a, answered) // its token is not in waiting any more
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.waiting, a.token); len(c.waiting) == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}
