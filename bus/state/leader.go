package state

import "context"

// last reads a key from the stream's leader. A key that was never written has revision 0; a deleted or
// lapsed one has no data.
func (c *Configs) last(ctx context.Context, key string) (data []byte, revision uint64, err error) {
	e, err := c.bucket.Last(ctx, key)
	return e.Value, e.Revision, err
}
