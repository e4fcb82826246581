package state

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go/jetstream"
)

// Activate makes the proposed version the active one. It returns [ErrMoved] if the version is no
// longer proposed, and nil if it is or was active already.
func (c *Configs) Activate(ctx context.Context, version uint64) error {
	err := kv.Retry(ctx, func(ctx context.Context) (bool, error) {
		cur, revision, err := c.pointer(ctx)
		switch {
		case err != nil || cur.keeps(version):
			return true, err
		case !cur.proposes(version):
			return false, ErrMoved
		}
		return c.set(ctx, cur.activate(time.Now().UTC()), revision)
	})
	if err != nil {
		return fmt.Errorf("activating config version %d: %w", version, err)
	}
	c.prune(ctx)
	return nil
}

// Withdraw removes a proposal and its version. It returns nil if that version is not proposed.
func (c *Configs) Withdraw(ctx context.Context, version uint64) error {
	withdrawn := false
	err := kv.Retry(ctx, func(ctx context.Context) (bool, error) {
		cur, revision, err := c.pointer(ctx)
		if err != nil || !cur.proposes(version) {
			return true, err
		}
		withdrawn, err = c.set(ctx, cur.withdraw(), revision)
		return withdrawn, err
	})
	if err != nil {
		return fmt.Errorf("withdrawing config version %d: %w", version, err)
	}
	if withdrawn {
		c.discard(ctx, version)
	}
	return nil
}

// set writes the pointer if its revision is still the given one, and reports whether it did. An
// error does not mean that nothing was written.
func (c *Configs) set(ctx context.Context, p pointer, revision uint64) (bool, error) {
	value, err := schema.Marshal(p)
	if err != nil {
		return false, err
	}
	_, err = c.kv.Update(ctx, currentKey, value, revision)
	if kv.Refused(err) {
		return false, nil
	}
	// A node that misses this message reads the pointer at its next interval.
	_ = c.js.Conn().Publish(bus.ConfigChanged, nil)
	return err == nil, err
}

// discard deletes a version that will never be active. After a failure the next activation tries
// again.
func (c *Configs) discard(ctx context.Context, version uint64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), kv.TryFor)
	defer cancel()
	c.leftover(c.purge(ctx, versionKey(version)))
}

// prune deletes versions that the pointer no longer lists.
func (c *Configs) prune(ctx context.Context) {
	cur, _, err := c.pointer(ctx)
	if err == nil {
		err = c.deleteOthers(ctx, cur)
	}
	c.leftover(err)
}

func (c *Configs) leftover(err error) {
	if err != nil {
		c.log.Warn("cannot remove old config versions yet", "error", err)
	}
}

func (c *Configs) deleteOthers(ctx context.Context, cur pointer) error {
	list, err := c.kv.ListKeysFiltered(ctx, "v.*")
	if err != nil {
		return err
	}
	defer func() { _ = list.Stop() }()
	var errs []error
	for key := range list.Keys() {
		n, err := strconv.ParseUint(strings.TrimPrefix(key, "v."), 10, 64)
		if err != nil || n > cur.Last || cur.keeps(n) || cur.proposes(n) {
			continue
		}
		errs = append(errs, c.purge(ctx, key))
	}
	return errors.Join(errs...)
}

func (c *Configs) purge(ctx context.Context, key string) error {
	return c.kv.Purge(ctx, key, jetstream.PurgeTTL(markersFor))
}
