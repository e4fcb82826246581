package client

// Waiting counts the calls that c remembers.
func (c *Client) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

// Leaving tells the client that its server is about to stop.
func (c *Client) Leaving() { c.leaving(c.nc) }

// Moves is how often it made a connection anew.
func (c *Client) Moves() uint64 { return c.nc.Stats().Reconnects }
