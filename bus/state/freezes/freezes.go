package freezes

import (
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
	// proof is a key that brokers write, whatever it holds: that it was stored proves that
	// the leader is not cut off, and where it was stored, up to where all must be known.
	proof = "proof"
	// history is how many earlier states the bucket keeps, to look at.
	history = 8
	// maxBytes is the bucket's room, and maxRecord bounds one state.
	maxBytes  = 1 << 20
	maxRecord = 2 * schema.MaxFrozen
	// behindFor is how long the mirror may be behind and still be ready.
	behindFor = 3 * time.Second
	// backwards is how long a leader must say older things than are known, and lead for
	// sure, before that is believed: one that was cut off does so until it notices, a
	// fabric that came back from a copy does so for ever.
	backwards = 15 * time.Second
)

// Errors are sentences that may be shown to whoever asked.
var (
	// ErrInvalid: the request makes no sense.
	ErrInvalid = errors.New("the freeze is not valid")
	// ErrFull: there are too many freezes.
	ErrFull = errors.New("there are too many freezes")
	// ErrNotFrozen: what is to be thawed is not frozen.
	ErrNotFrozen = errors.New("nothing was thawed")
	// ErrMoved: something was frozen or thawed since the version that the request is about.
	ErrMoved = errors.New("the freezes changed at the same time")
	// ErrUnreadable: what is stored is no list of freezes.
	ErrUnreadable = errors.New("the stored freezes cannot be read")
	// ErrUnavailable: the state could be neither read nor written in time.
	ErrUnavailable = errors.New("the freezes cannot be reached now")
)

// A State is what is frozen at one moment. It is never changed, only replaced.
type State struct {
	// Version is the revision of the key; 0: nothing was ever frozen.
	Version uint64
	// Freezes are those that stand, in the order in which they came.
	Freezes []schema.Freeze
}

// Options say how freezes are kept.
type Options struct {
	// Replicas of the bucket, if it is made now; 0 is 1.
	Replicas int
	// Logger hears of what can wait; nil is silence.
	Logger *slog.Logger
}

// Freezes are those of a fabric.
type Freezes struct {
	log    *slog.Logger
	bucket *kv.Bucket
	mirror *kv.Mirror
	// now is what is known. It is replaced with the lock held.
	now atomic.Pointer[State]
	// unread is what was stored after that and cannot be read; nil: nothing was. It is
	// replaced with the lock held, too.
	unread atomic.Pointer[unread]

	mu  sync.Mutex // guards what follows, and the order in which use is called
	use func(*State)
	// older is since when leaders say older things than are known; zero: they do not.
	older time.Time
}

// Open makes the bucket, or opens the one that is there. It returns when this process
// knows what is frozen, and follows that until [Freezes.Close]. Where it cannot be read
// the state before counts, if the bucket still has that; else it is an error.
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Freezes, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	b, err := kv.Open(ctx, js, jetstream.KeyValueConfig{
		Bucket: Bucket, Description: "whose tool calls the hook fabric refuses until further notice", Replicas: max(o.Replicas, 1),
		Storage: jetstream.FileStorage, History: history, MaxBytes: maxBytes, MaxValueSize: maxRecord,
	}, 0)
	if err != nil {
		return nil, err
	}
	f := &Freezes{log: o.Logger, bucket: b, use: func(*State) {}}
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

// Now is what is frozen, as far as it is known here. It asks nobody.
func (f *Freezes) Now() *State { return f.now.Load() }

// Use has use called with what is frozen now, and again whenever that changes, one
// call after the other. It must neither block nor call the Freezes.
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

// Unstored returns why nothing was stored of what was written last; nil: it was.
func (f *Freezes) Unstored() error { return f.bucket.Unstored() }

// Anew forgets that: the server was mended.
func (f *Freezes) Anew() { f.bucket.Anew() }

// prove returns when all is known here that was stored when it was called.
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

// apply takes over what the bucket holds.
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

// wentBack reports whether leaders have been saying older things than are known for so
// long that it is believed, and who says so has led since.
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

// take replaces what is known by something newer. The caller holds the lock.
func (f *Freezes) take(s *State) {
	if s.Version > f.now.Load().Version {
		f.now.Store(s)
		f.use(s)
		if u := f.unread.Load(); u != nil && u.revision < s.Version {
			f.unread.Store(nil)
		}
	}
}

// Confirm reads from the leader what is frozen. When it returns nil, all that was
// frozen or thawed when it was called is known here; if the broker's lease had lapsed
// also where somebody who is cut off takes himself for the leader. What cannot be read
// leaves what was known before, which a broker whose lease lapsed goes by, too.
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
		f.older = time.Time{} // who says older things after that may be another one
		return fmt.Errorf("reading the freezes: %w", err)
	}
	s, err := f.reads(e)
	if lapsed && errors.Is(err, ErrUnreadable) {
		return nil // as everybody else does
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
