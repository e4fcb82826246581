package state

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// backwards is how long a leader must return an older state before the follower accepts it. A leader
// that was cut off does so only until it notices, a restored data directory permanently.
const backwards = 15 * time.Second

// A source is what a follower reads from.
type source interface {
	// standing returns the state of the configuration, from the leader. If it has that fabric and
	// revision, it need not be verified again.
	standing(ctx context.Context, fabric string, revision uint64) (schema.Standing, error)
	// version reads a version of the fabric; [ErrNoVersion]: it does not exist, or not yet.
	version(ctx context.Context, fabric string, n uint64) (schema.Config, error)
}

// A follower passes the changes of its source to use.
type follower struct {
	from source
	log  *slog.Logger
	use  func(Update)
	// seen is the last update that was passed to use, at revision; told is false before the
	// first one.
	seen     Update
	revision uint64
	told     bool
	// older is since when leaders return an older state than seen.
	older time.Time
	// failed is the result of the last look.
	failed error
}

// again looks, logs errors, and returns when to look again without a notification.
func (f *follower) again(ctx context.Context) time.Duration {
	err := f.look(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil && (f.failed == nil || f.failed.Error() != err.Error()):
		f.log.Warn("cannot follow the configuration; the version that was active last stays active here, and this process tries again",
			"version", f.active(), "error", err)
	case err == nil && f.failed != nil:
		f.log.Info("this process follows the configuration again", "version", f.active())
	}
	if f.failed = err; err != nil || f.seen.Bad != nil {
		return lookSoon
	}
	return lookAgain
}

// active returns the active version that was last passed to use; 0: none.
func (f *follower) active() uint64 {
	if f.seen.Active == nil {
		return 0
	}
	return f.seen.Active.Version
}

// look reads the state of the configuration and passes it on. It starts again if the state changes
// during the read.
func (f *follower) look(ctx context.Context) error {
	for range kv.Attempts {
		if err := f.lookOnce(ctx); !errors.Is(err, ErrMoved) {
			return err
		}
	}
	return kv.ErrContended
}

func (f *follower) lookOnce(ctx context.Context) error {
	s, err := f.from.standing(ctx, f.seen.Fabric, f.revision)
	if err != nil {
		return err
	}
	if s.Fabric != f.seen.Fabric {
		if f.seen.Fabric != "" {
			f.log.Warn("the fabric was recreated; its versions start from 1 again")
		}
		f.seen, f.revision, f.told = Update{Fabric: s.Fabric}, 0, false
	}
	if err := f.forward(s.Revision); err != nil {
		return err
	}
	if f.told && s.Revision == f.revision && f.seen.Bad == nil {
		return nil
	}
	return f.take(ctx, &s)
}

// forward rejects a state that is older than the last one, for a while.
func (f *follower) forward(revision uint64) error {
	switch {
	case revision >= f.revision:
		f.older = time.Time{}
		return nil
	case f.older.IsZero():
		f.older = time.Now()
	case time.Since(f.older) > backwards:
		f.log.Warn("the configuration went back to an earlier state; check whether an old data directory was restored")
		f.older = time.Time{}
		return nil
	}
	return errors.New("the stream's leader returned an older state than before; it may be cut off from the others")
}

// take reads the versions in s and passes them to use.
func (f *follower) take(ctx context.Context, s *schema.Standing) error {
	next := Update{Fabric: s.Fabric, Keep: s.Keep}
	var err error
	if next.Active, err = f.version(ctx, s.Active, s.Revision); err != nil {
		return err
	}
	if s.Proposed > 0 {
		next.Candidate, err = f.version(ctx, s.Proposed, s.Revision)
		if errors.Is(err, ErrNoVersion) || errors.Is(err, ErrUnreadable) {
			next.Bad, err = &BadVersion{Version: s.Proposed, Err: err}, nil
		}
	}
	if err != nil {
		return err
	}
	changed := !f.told || !next.equal(f.seen)
	f.seen, f.revision, f.told = next, s.Revision, true
	if changed {
		f.use(next)
	}
	return nil
}

// version returns a known version, or reads it; 0 is nil. If the state at that revision changes before
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
	for i := 0; ; i++ { // a replica may not have a new version yet
		cfg, err := f.from.version(ctx, f.seen.Fabric, n)
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

// still returns [ErrMoved] if the state has changed since that revision.
func (f *follower) still(ctx context.Context, revision uint64) error {
	now, err := f.from.standing(ctx, f.seen.Fabric, revision)
	if err == nil && (now.Fabric != f.seen.Fabric || now.Revision != revision) {
		err = ErrMoved
	}
	return err
}

// equal reports whether u and o are the same for a node.
func (u Update) equal(o Update) bool {
	return u.Active == o.Active && u.Candidate == o.Candidate && slices.Equal(u.Keep, o.Keep) &&
		(u.Bad == nil) == (o.Bad == nil) && (u.Bad == nil || u.Bad.Version == o.Bad.Version && u.Bad.Err.Error() == o.Bad.Err.Error())
}
