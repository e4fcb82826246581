package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go/jetstream"
)

// Publish makes cfg the active version, under a number of its own, which it
// returns. If the active version already says the same (its number aside; the
// folder counts, because programs are looked up there), nothing is written and changed is false.
// Numbers only grow; some may be skipped.
func (c *Configs) Publish(ctx context.Context, cfg schema.Config) (version uint64, changed bool, err error) {
	p := publication{configs: c, cfg: cfg}
	if p.content, err = content(cfg); err != nil {
		return 0, false, err
	}
	if n := len(p.content); n > MaxConfig {
		return 0, false, fmt.Errorf("the configuration takes %d KiB as JSON; at most %d KiB are possible, so write fewer or shorter hooks", n>>10, MaxConfig>>10)
	}
	for i := range attempts {
		done, err := p.try(ctx)
		if err != nil {
			return 0, false, fmt.Errorf("publishing the configuration: %w", err)
		}
		if done {
			c.prune(ctx)
			return p.active, p.active == p.written, nil
		}
		if err := again(ctx, i); err != nil {
			return 0, false, fmt.Errorf("publishing the configuration: %w", err)
		}
	}
	return 0, false, fmt.Errorf("publishing the configuration: others changed it %d times meanwhile; try again", attempts)
}

// content is what two configurations have in common when they say the same.
func content(cfg schema.Config) ([]byte, error) {
	cfg.Version = 0
	first, err := schema.Marshal(cfg)
	if err != nil {
		return nil, fmt.Errorf("the configuration can not be written as JSON: %w", err)
	}
	// Once around, because options read back may be of other Go types.
	var back schema.Config
	if err := schema.Unmarshal(first, &back); err != nil {
		return nil, fmt.Errorf("the configuration can not be read back: %w", err)
	}
	return schema.Marshal(back)
}

// A publication is one call of Publish.
type publication struct {
	configs *Configs
	cfg     schema.Config
	content []byte
	// written is the version that holds cfg, active or not yet; 0 is none.
	written uint64
	// active is the active version, once the publication is done.
	active uint64
}

// try reads what is active and, if that is something else, writes the version
// and then the pointer to it. It reports whether the publication is done.
func (p *publication) try(ctx context.Context) (bool, error) {
	cur, revision, err := p.configs.pointer(ctx)
	if err != nil {
		return false, err
	}
	if cur.Version > 0 {
		if same, err := p.same(ctx, cur.Version); same || err != nil {
			p.active = cur.Version
			return same, err
		}
	}
	if p.written <= cur.Version {
		if err := p.write(ctx, cur.Version+1); err != nil {
			return false, err
		}
	}
	value, err := schema.Marshal(cur.next(p.written))
	if err != nil {
		return false, err
	}
	_, err = p.configs.kv.Update(ctx, currentKey, value, revision)
	if refused(err) {
		return false, nil
	}
	p.active = p.written
	return err == nil, err
}

// same reports whether version says what is to be published.
func (p *publication) same(ctx context.Context, version uint64) (bool, error) {
	if version == p.written {
		return true, nil
	}
	active, err := p.configs.Get(ctx, version)
	if errors.Is(err, ErrNoVersion) {
		return false, nil // Replaced meanwhile, or deleted: then it is no longer in the way.
	}
	if err != nil {
		return false, err
	}
	c, err := content(active)
	return bytes.Equal(c, p.content), err
}

// write stores the configuration under the first free number from n.
func (p *publication) write(ctx context.Context, n uint64) error {
	for range attempts {
		p.cfg.Version = n
		data, err := schema.Marshal(p.cfg)
		if err != nil {
			return err
		}
		_, err = p.configs.kv.Update(ctx, versionKey(n), data, 0)
		if err == nil {
			p.written = n
			return nil
		}
		if !refused(err) {
			return err
		}
		n++ // Somebody else's, whose pointer may still come.
	}
	return fmt.Errorf("the config versions up to %d are taken; try again", n-1)
}

// prune deletes the versions that are older than the active one and not kept.
// It is no harm if that does not work: the next one tries again.
func (c *Configs) prune(ctx context.Context) {
	cur, _, err := c.pointer(ctx)
	if err == nil {
		err = c.deleteOthers(ctx, cur)
	}
	if err != nil {
		c.log.Warn("old config versions are still there", "error", err)
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
		if err != nil || n >= cur.Version || slices.Contains(cur.Kept, n) {
			continue
		}
		errs = append(errs, c.kv.Purge(ctx, key, jetstream.PurgeTTL(markersFor)))
	}
	return errors.Join(errs...)
}
