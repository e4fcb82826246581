package client

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
)

// How a client goes from a server that is about to stop to another one. A call that
// is under way then would be asked a second time, and hooks that must not run twice
// would count as failed. So a moment is made in which none is: new calls wait a
// little, and if those before them take longer, it is tried again.
const (
	holdFor   = 400 * time.Millisecond
	holdAgain = 100 * time.Millisecond
	// moveWithin is how long the server may take to stop.
	moveWithin = 5 * time.Second
	// leaveAfter is for how long a server must say that no aggregator listens before
	// another one is looked for, and leaveAgain how soon that one may be left in turn.
	leaveAfter = 2 * time.Second
	leaveAgain = 10 * time.Second
)

// leaving hears that the server is about to stop.
func (c *Client) leaving(nc *nats.Conn) {
	c.spawn(func() {
		ctx, cancel := context.WithTimeout(c.life, moveWithin)
		defer cancel()
		_, lost, _ := c.connection()
		for ctx.Err() == nil && !isClosed(lost) && !c.move(ctx, nc, lost) && c.rest(ctx, holdAgain) {
		}
	})
}

// move goes to another server if no call is under way soon, and reports whether it
// did. lost is closed once the connection that there is now is gone: a call that
// began before that was known would take the loss for its own.
func (c *Client) move(ctx context.Context, nc *nats.Conn, lost chan struct{}) bool {
	idle := c.hold()
	defer c.release()
	t := time.NewTimer(holdFor)
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

// leaveServer goes to another server that is known, from one by which no aggregator answers:
// it, or the broker there, may be cut off from the others. Calls that are under way on that
// connection, which closes lost when it ends, wait in vain and are asked again.
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

// hold keeps calls from beginning. idle is closed when none is under way.
func (c *Client) hold() (idle chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held, c.idle = make(chan struct{}), make(chan struct{})
	if idle = c.idle; len(c.waiting) == 0 {
		close(idle)
		c.idle = nil
	}
	return idle
}

// release lets calls begin again.
func (c *Client) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.held)
	c.held, c.idle = nil, nil
}

// begin counts a call as under way, once calls may begin.
func (c *Client) begin(ctx context.Context, a *ask) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held := c.held; held != nil {
		c.mu.Unlock()
		select {
		case <-held:
		case <-ctx.Done():
		case <-c.closed:
		}
		c.mu.Lock()
	}
	c.waiting[a.token] = a
}

// ended counts a call as no longer under way.
func (c *Client) ended(a *ask, answered bool) {
	defer c.leave(a, answered) // nobody finds it by its token any more
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.waiting, a.token); len(c.waiting) == 0 && c.idle != nil {
		close(c.idle)
		c.idle = nil
	}
}
