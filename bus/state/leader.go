package state

import "context"

// last reads a key from the stream's leader. A key that was never written has
// revision 0; one that was deleted, or has lapsed, holds nothing.
func (c *Configs) last(ctx context.Context, key string) (data []byte, revision uint64, err error) {
	e, err := c.bucket.Last(ctx, key)
	return e.Value, e.Revision, err
}
