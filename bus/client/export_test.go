package client

// Waiting counts the calls in progress.
func (c *Client) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// Leaving tells the client that its server is about to stop.
func (c *Client) Leaving() { c.leaving(c.nc) }

// Moves counts the reconnects.
func (c *Client) Moves() uint64 { return c.nc.Stats().Reconnects }
