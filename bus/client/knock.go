package client

import "time"

const (
	// knockEvery is how often calls have a connection that has been lost for long tried again at once, and
	// knockFor how long the one that did waits for what comes of it. The pauses of the client library are up to 4 s by
	// then, and in each of them calls would go unjudged although the fabric is back.
	knockEvery = time.Second
	knockFor   = 150 * time.Millisecond
)

// knock has a lost connection tried again at once, if no call did that lately, and reports whether it did.
func (c *Client) knock() bool {
	now := time.Now()
	c.mu.Lock()
	due := now.Sub(c.knocked) >= knockEvery
	if due {
		c.knocked = now
	}
	c.mu.Unlock()
	return due && c.nc.IsReconnecting() && c.nc.ForceReconnect() == nil
}
