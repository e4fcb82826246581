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

// backwards is how long a leader must say older things than were heard before
// that is believed: a leader that was cut off does so until it notices, a
// fabric that came back from a copy does so for ever.
const backwards = 15 * time.Second

// A source is where a follower reads.
type source interface {
	// standing is where the configuration stands, by the leader's word. If it is of
	// that fabric and revision, nobody needs to be sure once more that it is.
	standing(ctx context.Context, fabric string, revision uint64) (schema.Standing, error)
	// version reads one of the fabric's versions; [ErrNoVersion]: it is not there, or
	// not yet.
	version(ctx context.Context, fabric string, n uint64) (schema.Config, error)
}

// A follower takes over what its source says.
type follower struct {
	from source
	log  *slog.Logger
	use  func(Update)
	// seen is what use was last told, of the pointer's revision; told says
	// that it was told anything.
	seen     Update
	revision uint64
	told     bool
	// older is since when leaders say older things than seen.
	older time.Time
	// failed is what came of the last look.
	failed error
}

// again looks, says what is wrong, and returns when to look again although nobody
// says that something changed.
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

// active is the version that use was last told is; 0: none.
func (f *follower) active() uint64 {
	if f.seen.Active == nil {
		return 0
	}
	return f.seen.Active.Version
}

// look reads where the configuration stands and takes it over; once more if it
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

// forward refuses a revision that is older than the one before, for a while.
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

// take reads the versions that s names and tells use of them.
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

// version returns a version that was read before, or reads it; 0 is nil. It is
// one that was named at that revision: if something changes before the version
// is found, the error is [ErrMoved].
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

// still returns [ErrMoved] if something changed since that revision.
func (f *follower) still(ctx context.Context, revision uint64) error {
	now, err := f.from.standing(ctx, f.seen.Fabric, revision)
	if err == nil && (now.Fabric != f.seen.Fabric || now.Revision != revision) {
		err = ErrMoved
	}
	return err
}

// equal reports whether a node need not be told o after u.
func (u Update) equal(o Update) bool {
	return u.Active == o.Active && u.Candidate == o.Candidate && slices.Equal(u.Keep, o.Keep) &&
		(u.Bad == nil) == (o.Bad == nil) && (u.Bad == nil || u.Bad.Version == o.Bad.Version && u.Bad.Err.Error() == o.Bad.Err.Error())
}
