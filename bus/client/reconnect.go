package client

import "time"

const (
	// reconnectEvery is the minimum interval in which calls force a reconnect after a
	// long outage. reconnectFor is how long such a call waits for the result. The client
	// library pauses for up to 4 s by then, and without this, calls would stay unjudged
	// during a pause although the fabric is back.
	reconnectEvery = time.Second
	reconnectFor   = 150 * time.Millisecond
)

// reconnectNow forces a reconnect unless a call did so recently, and reports whether it
// did.
func (c *Client) reconnectNow() bool {
	now := time.Now()
	c.mu.Lock()
	due := now.Sub(c.forcedAt) >= reconnectEvery
	if due {
		c.forcedAt = now
	}
	c.mu.Unlock()
	return due && c.nc.IsReconnecting() && c.nc.ForceReconnect() == nil
}
