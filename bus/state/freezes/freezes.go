package freezes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// Bucket holds the freezes, all under one key.
const Bucket = "hook_freezes"

const (
	key = "freezes"
	// proof is a key without a meaningful value. Storing it proves that the leader is not cut off, and its
	// revision is up to where a complete copy must reach.
	proof = "proof"
	// history is how many earlier states the bucket keeps for inspection.
	history = 8
	// maxBytes is the size of the bucket, and maxRecord bounds one state.
	maxBytes  = 1 << 20
	maxRecord = 2 * schema.MaxFrozen
	// behindFor is how long the mirror may be behind before it is not ready.
	behindFor = 3 * time.Second
	// backwards is how long a proved leader must return an older state before that is accepted. A leader that
	// was cut off does so only until it notices, a restored data directory permanently.
	backwards = 15 * time.Second
)

// The errors may be shown to clients.
var (
	// ErrInvalid: the request is invalid.
	ErrInvalid = errors.New("the freeze is not valid")
	// ErrFull: there are too many freezes.
	ErrFull = errors.New("there are too many freezes")
	// ErrNotFrozen: there is no freeze of the pattern.
	ErrNotFrozen = errors.New("nothing was thawed")
	// ErrMoved: the freezes changed since the version of the request.
	ErrMoved = errors.New("the freezes changed at the same time")
	// ErrUnreadable: the stored value is no list of freezes.
	ErrUnreadable = errors.New("the stored freezes cannot be read")
	// ErrUnavailable: the state could not be read or written in time.
	ErrUnavailable = errors.New("the freezes cannot be reached now")
)

// A State is the list of freezes at one moment. It is never changed, only replaced.
type State struct {
	// Version is the revision of the key; 0: there never was a freeze.
	Version uint64
	// Freezes are in the order in which they were made.
	Freezes []schema.Freeze
}

// Options configure the bucket.
type Options struct {
	// Replicas of a new bucket; 0: 1.
	Replicas int
	// Logger logs what needs no action at once; nil: no log.
	Logger *slog.Logger
}

// Freezes are the freezes of a fabric.
type Freezes struct {
	kv.Health

	log    *slog.Logger
	bucket *kv.Bucket
	mirror *kv.Mirror
	// now is the known state. It is replaced with the lock held.
	now atomic.Pointer[State]
	// unread is a newer revision that cannot be decoded; nil: none. It is replaced with the lock held, too.
	unread atomic.Pointer[unread]

	mu  sync.Mutex // guards the following fields, and the order of calls of use
	use func(*State)
	// older is since when leaders return an older state; zero: they do not.
	older time.Time
}

// Open creates or opens the bucket. It returns when this process knows the freezes, and follows them until
// [Freezes.Close]. If the newest revision is unreadable it uses an earlier one, if the bucket has one.
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Freezes, error) {
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	b, err := kv.Open(ctx, js, jetstream.KeyValueConfig{
		Bucket: Bucket, Description: "whose tool calls the hook fabric refuses until further notice", Replicas: max(o.Replicas, 1),
		Storage: jetstream.FileStorage, History: history, MaxBytes: maxBytes, MaxValueSize: maxRecord,
	}, 0)
	if err != nil {
		return nil, err
	}
	f := &Freezes{Health: b, log: o.Logger, bucket: b, use: func(*State) {}}
	f.now.Store(&State{})
	if f.mirror, err = b.Follow(ctx, kv.MirrorOptions{Apply: f.apply, Logger: o.Logger}); err != nil {
		return nil, err
	}
	if err := f.Unreadable(); err != nil && f.Now().Version == 0 {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close stops following.
func (f *Freezes) Close() { f.mirror.Close() }

// Now returns the known freezes, without a request.
func (f *Freezes) Now() *State { return f.now.Load() }

// Use calls use with the known freezes, and again after each change, never concurrently. use must neither block nor
// call the Freezes.
func (f *Freezes) Use(use func(*State)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.use = use
	use(f.now.Load())
}

// Ready returns nil if the mirror follows the bucket, or what is wrong.
func (f *Freezes) Ready() error {
	if lag := f.mirror.Lag(); lag >= behindFor {
		return fmt.Errorf("this broker's copy of the freezes is %v old", lag.Round(time.Second))
	}
	return nil
}

// prove returns when everything that was stored before the call is known here.
func (f *Freezes) prove(ctx context.Context) error {
	revision, err := f.bucket.Prove(ctx, kv.Write{Key: proof, Blind: true, Replace: true})
	if err == nil {
		err = f.mirror.Reach(ctx, revision)
	}
	if err != nil {
		return fmt.Errorf("confirming the freezes: %w", err)
	}
	return nil
}

// apply applies a revision of the bucket.
func (f *Freezes) apply(e kv.Entry) {
	if e.Key != key {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, err := f.reads(e); err == nil {
		f.take(s)
	}
}

// wentBack reports whether leaders have returned an older state for longer than backwards, and the present one has
// provably led during this time.
func (f *Freezes) wentBack(ctx context.Context) bool {
	f.mu.Lock()
	older := f.older
	f.mu.Unlock()
	if older.IsZero() || time.Since(older) <= backwards {
		return false
	}
	_, err := f.bucket.LedSince(ctx, older)
	return err == nil
}

// take replaces the known state with a newer one. The caller holds the lock.
func (f *Freezes) take(s *State) {
	if s.Version > f.now.Load().Version {
		f.now.Store(s)
		f.use(s)
		if u := f.unread.Load(); u != nil && u.revision < s.Version {
			f.unread.Store(nil)
		}
	}
}

// Confirm reads the freezes from the leader. When it returns nil, every earlier change is known here. If the lease of the
// broker had lapsed, the leader must prove that it is not cut off. An unreadable state leaves the known one in effect, also
// for a broker whose lease had lapsed.
func (f *Freezes) Confirm(ctx context.Context, lapsed bool) error {
	if lapsed {
		if err := f.prove(ctx); err != nil {
			return err
		}
	}
	e, err := f.bucket.Last(ctx, key)
	leads := err == nil && f.wentBack(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.older = time.Time{} // a later answer may be of another leader
		return fmt.Errorf("reading the freezes: %w", err)
	}
	s, err := f.reads(e)
	if lapsed && errors.Is(err, ErrUnreadable) {
		return nil // as on all other brokers
	}
	if err != nil {
		return err
	}
	switch known := f.now.Load(); {
	case s.Version >= known.Version:
		f.older = time.Time{}
		f.take(s)
	case f.older.IsZero():
		f.older = time.Now()
	case leads:
		f.log.Warn("the freezes went back to an earlier state; check whether an old data directory was restored", "version", s.Version, "known", known.Version)
		f.older = time.Time{}
		f.unread.Store(nil)
		f.now.Store(s)
		f.use(s)
	}
	return nil
}
