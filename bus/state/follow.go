package state

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// backwards is how long a leader must say older things than were heard before
// that is believed: a leader that was cut off does so until it notices, a
// fabric that came back from a copy does so for ever.
const backwards = 15 * time.Second

// A follower takes over what the pointer says.
type follower struct {
	configs *Configs
	use     func(Update)
	// seen is what use was last told, of the pointer's revision; told says
	// that it was told anything.
	seen     Update
	revision uint64
	told     bool
	// older is since when leaders say older things than seen.
	older time.Time
}

// look reads the pointer from the leader and takes it over; once more if it
// changes meanwhile.
func (f *follower) look(ctx context.Context) error {
	for range kv.Attempts {
		if err := f.lookOnce(ctx); !errors.Is(err, ErrMoved) {
			return err
		}
	}
	return kv.ErrContended
}

func (f *follower) lookOnce(ctx context.Context) error {
	id, p, revision, err := f.view(ctx)
	if err != nil {
		return err
	}
	if id != f.configs.FabricID() {
		f.configs.log.Warn("the fabric was made anew; its versions count from the start")
		f.configs.fabric.Store(&id)
	}
	if id != f.seen.Fabric {
		f.seen, f.revision, f.told = Update{Fabric: id}, 0, false
	}
	if err := f.forward(revision); err != nil {
		return err
	}
	if f.told && revision == f.revision && f.seen.Bad == nil {
		return nil
	}
	return f.take(ctx, p, revision)
}

// view reads the pointer and the fabric that it belongs to.
func (f *follower) view(ctx context.Context) (id string, p pointer, revision uint64, err error) {
	if id, err = f.fabricID(ctx); err != nil {
		return "", p, 0, err
	}
	if p, revision, err = f.configs.pointer(ctx); err != nil {
		return "", p, 0, err
	}
	if id == f.seen.Fabric && revision == f.revision {
		return id, p, revision, nil
	}
	after, err := f.fabricID(ctx)
	if err == nil && after != id {
		err = errors.New("the fabric is being made anew")
	}
	return id, p, revision, err
}

func (f *follower) fabricID(ctx context.Context) (string, error) {
	id, _, err := f.configs.last(ctx, fabricKey)
	if err == nil && len(id) == 0 {
		err = fmt.Errorf("the bucket %s has none yet", ConfigBucket)
	}
	if err != nil {
		return "", fmt.Errorf("reading the fabric's id: %w", err)
	}
	return string(id), nil
}

// forward refuses a revision that is older than the one before, for a while.
func (f *follower) forward(revision uint64) error {
	switch {
	case revision >= f.revision:
		f.older = time.Time{}
		return nil
	case f.older.IsZero():
		f.older = time.Now()
	case time.Since(f.older) > backwards:
		f.configs.log.Warn("the configuration went back to an earlier state; was the data directory copied back?")
		f.older = time.Time{}
		return nil
	}
	return errors.New("the leader says older things than before; perhaps it is cut off from the others")
}

// take reads the versions that p names and tells use of them.
func (f *follower) take(ctx context.Context, p pointer, revision uint64) error {
	next := Update{Fabric: f.seen.Fabric, Keep: p.keep()}
	var err error
	if next.Active, err = f.version(ctx, p.Version, revision); err != nil {
		return err
	}
	if n := p.Proposed; n != nil {
		next.Candidate, err = f.version(ctx, n.Version, revision)
		if errors.Is(err, ErrNoVersion) || errors.Is(err, errUnreadable) {
			next.Bad, err = &BadVersion{Version: n.Version, Err: err}, nil
		}
	}
	if err != nil {
		return err
	}
	changed := !f.told || !next.equal(f.seen)
	f.seen, f.revision, f.told = next, revision, true
	if changed {
		f.use(next)
	}
	return nil
}

// version returns a version that was read before, or reads it; 0 is nil. It is
// one that the pointer named at that revision: if the pointer changes before
// the version is found, the error is [ErrMoved].
func (f *follower) version(ctx context.Context, n, revision uint64) (*schema.Config, error) {
	for _, known := range []*schema.Config{f.seen.Active, f.seen.Candidate} {
		if known != nil && known.Version == n {
			return known, nil
		}
	}
	if n == 0 {
		return nil, nil
	}
	for i := 0; ; i++ { // A replica may not know a new version yet.
		cfg, err := f.configs.Get(ctx, n)
		if err == nil {
			cfg.Fabric = f.seen.Fabric
			return &cfg, nil
		}
		if !errors.Is(err, ErrNoVersion) {
			return nil, err
		}
		if i == 8 {
			return nil, err
		}
		if err := kv.Again(ctx, i); err != nil {
			return nil, err
		}
		if err := f.still(ctx, revision); err != nil {
			return nil, err
		}
	}
}

// still returns [ErrMoved] if the pointer changed since that revision.
func (f *follower) still(ctx context.Context, revision uint64) error {
	_, now, err := f.configs.last(ctx, currentKey)
	if err == nil && now != revision {
		err = ErrMoved
	}
	return err
}

// equal reports whether a node need not be told o after u.
func (u Update) equal(o Update) bool {
	return u.Active == o.Active && u.Candidate == o.Candidate && slices.Equal(u.Keep, o.Keep) &&
		(u.Bad == nil) == (o.Bad == nil) && (u.Bad == nil || u.Bad.Version == o.Bad.Version && u.Bad.Err.Error() == o.Bad.Err.Error())
}
