package state

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
)

// TellPart is the size of a part of a version in one answer of [Configs.Tell]: small enough for slow
// connections and any server.
const TellPart = 256 << 10

// ErrNoPart means that a version ends before the requested part.
var ErrNoPart = errors.New("the config version has no such part")

// Tell answers a request of [Follow] with a [schema.Standing], or with a part of a version, a
// [schema.FetchAnswer].
func (c *Configs) Tell(ctx context.Context, req *schema.FollowRequest) (any, error) {
	if req.Version == 0 {
		return c.standing(ctx, "", 0)
	}
	data, err := c.read(ctx, req.Version)
	if err != nil {
		return nil, err
	}
	// Check the fabric after the read: another fabric's version may have the same number.
	switch id, err := c.readFabric(ctx); {
	case err != nil:
		return nil, err
	case id != req.Fabric:
		return nil, fmt.Errorf("config version %d of the fabric %.40q: %w; this one is %s", req.Version, req.Fabric, ErrMoved, id)
	}
	size := int64(len(data))
	if req.Offset < 0 || req.Offset > size {
		return nil, fmt.Errorf("%w: it has %d bytes, and the part would begin at %d", ErrNoPart, size, req.Offset)
	}
	return schema.FetchAnswer{Data: data[req.Offset:min(size, req.Offset+TellPart)], Size: size}, nil
}

// standing reads the pointer and its fabric from the leader.
func (c *Configs) standing(ctx context.Context, fabric string, revision uint64) (s schema.Standing, err error) {
	if s.Fabric, err = c.readFabric(ctx); err != nil {
		return s, err
	}
	p, at, err := c.pointer(ctx)
	if err != nil {
		return s, err
	}
	s.Revision, s.Active, s.Keep = at, p.Version, p.keep()
	if p.Proposed != nil {
		s.Proposed = p.Proposed.Version
	}
	if s.Fabric == fabric && at == revision {
		return s, nil
	}
	after, err := c.readFabric(ctx)
	if err == nil && after != s.Fabric {
		err = errors.New("the fabric is being recreated")
	}
	return s, err
}

// readFabric reads the fabric's id from the leader.
func (c *Configs) readFabric(ctx context.Context) (string, error) {
	id, _, err := c.last(ctx, fabricKey)
	if err == nil && len(id) == 0 {
		err = fmt.Errorf("the bucket %s has no id yet", ConfigBucket)
	}
	if err != nil {
		return "", fmt.Errorf("reading the fabric's id: %w", err)
	}
	return string(id), nil
}

// version is Get, because the bucket has the versions of one fabric.
func (c *Configs) version(ctx context.Context, _ string, n uint64) (schema.Config, error) {
	return c.Get(ctx, n)
}
