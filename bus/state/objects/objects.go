package objects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/singleflight"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

// The object stores.
const (
	// Bucket holds content that is too large for messages.
	Bucket = "hook_objects"
	// Histories holds parts of conversations. They have a separate store, so that they do not use the space of
	// messages for agents.
	Histories = "hook_histories"
)

// The limits of an object and of a part of it.
const (
	MaxObject = 256 << 20
	MaxPart   = 1 << 20
)

const (
	// loadFor bounds the load of an object, maxLoads the concurrent loads.
	loadFor  = 2 * time.Minute
	maxLoads = 4
)

// The errors may be shown to clients.
var (
	// ErrNotFound: the object does not exist.
	ErrNotFound = errors.New("there is no such object")
	// ErrTooLarge: it exceeds the limit.
	ErrTooLarge = errors.New("the object is too large")
	// ErrFull: the store has no space left.
	ErrFull = errors.New("the object store is full")
	// ErrInvalid: the part does not exist.
	ErrInvalid = errors.New("the object has no such part")
	// ErrDamaged: the stored content does not match its name.
	ErrDamaged = errors.New("the stored object is damaged")
	// ErrUnavailable: the store could not be read or written in time.
	ErrUnavailable = errors.New("the object store cannot be reached now")
)

// Options configure a store.
type Options struct {
	// Bucket is the store: [Bucket], also if it is empty, or [Histories].
	Bucket string
	// Replicas of the store; an existing store can get more, never fewer; 0: 1.
	Replicas int
	// Room is how many bytes the server may store in all, of which a new store gets a share; 0: unlimited.
	Room int64
	// Logger logs what needs no action at once; nil: no log.
	Logger *slog.Logger
}

// Objects is a store of content by its digest.
type Objects struct {
	kv.Health

	store store
	log   *slog.Logger
	// upload bounds concurrent uploads. With one at a time, clients that store the same object find it stored
	// by the first.
	upload chan struct{}
	cache  cache

	// slots bound the concurrent loads.
	slots chan struct{}
	loads singleflight.Group
	life  context.Context
	stop  context.CancelFunc
	// loading are the running loads. gate ensures that none begins after Close.
	loading sync.WaitGroup
	gate    sync.Mutex
}

// Open creates or opens the store.
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Objects, error) {
	p := planOf(o.Bucket)
	_, err := kv.Patiently(ctx, "opening the object store "+p.bucket, kv.Opening, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, p.open(ctx, js, o)
	})
	if err != nil {
		return nil, err
	}
	return newObjects(js, o), nil
}

// OpenExisting opens a store that a broker created.
func OpenExisting(ctx context.Context, js jetstream.JetStream, o Options) (*Objects, error) {
	p := planOf(o.Bucket)
	_, err := kv.Patiently(ctx, "opening the object store "+p.bucket+" that brokers make", kv.Passing, func(ctx context.Context) (jetstream.ObjectStore, error) {
		return js.ObjectStore(ctx, p.bucket)
	})
	if err != nil {
		return nil, err
	}
	return newObjects(js, o), nil
}

func newObjects(js jetstream.JetStream, o Options) *Objects {
	log := o.Logger
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	life, stop := context.WithCancel(context.Background())
	st := newStore(js, planOf(o.Bucket))
	return &Objects{Health: st.stored, store: st, log: log, upload: make(chan struct{}, planOf(o.Bucket).uploads), slots: make(chan struct{}, maxLoads), life: life, stop: stop}
}

// Put stores the content of r, unless it is stored already. Large content goes into a temporary file first.
func (s *Objects) Put(ctx context.Context, r io.Reader) (schema.Object, error) {
	return s.PutWithin(ctx, r, 100)
}

// PutWithin is Put that may fill the store only to a percentage.
func (s *Objects) PutWithin(ctx context.Context, r io.Reader, percent int) (schema.Object, error) {
	h, err := hold(r, MaxObject)
	if err != nil {
		return schema.Object{}, err
	}
	defer h.close()
	select {
	case s.upload <- struct{}{}:
		defer func() { <-s.upload }()
	case <-ctx.Done():
		return schema.Object{}, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	}
	if err := s.store.put(ctx, h, percent); err != nil {
		return schema.Object{}, fmt.Errorf("storing an object of %d bytes: %w", h.size, sentence(err))
	}
	return schema.Object{Digest: h.digest, Size: h.size}, nil
}

// Has returns nil if the object is complete.
func (s *Objects) Has(ctx context.Context, o schema.Object) error {
	f, err := s.store.find(ctx, o.Digest)
	switch {
	case err != nil:
		return sentence(err)
	case !f.whole:
		return fmt.Errorf("%w: %.80q", ErrNotFound, o.Digest)
	case f.size() != o.Size:
		return fmt.Errorf("%w: %s has %d bytes, not %d", ErrNotFound, o.Digest, f.size(), o.Size)
	}
	return nil
}

// Fresh reports whether the object is complete and will live for at least half of its lifetime. An older one must be stored
// again.
func (s *Objects) Fresh(ctx context.Context, o schema.Object) (bool, error) {
	f, err := s.store.find(ctx, o.Digest)
	if err != nil {
		return false, sentence(err)
	}
	return f.whole && f.size() == o.Size && s.store.clock.Age(f.stored) < s.store.plan.renewAfter, nil
}

// Part returns at most [MaxPart] bytes of an object from an offset, and the size of the object. At its end the part is empty.
func (s *Objects) Part(ctx context.Context, digest string, offset int64) (data []byte, size int64, err error) {
	for range 3 {
		h := s.cache.get(digest)
		if h == nil {
			if h, err = s.load(ctx, digest); err != nil {
				return nil, 0, err
			}
		}
		if offset < 0 || offset > h.size {
			return nil, h.size, fmt.Errorf("%w: it has %d bytes, and the part would begin at %d", ErrInvalid, h.size, offset)
		}
		data, err = h.part(offset, MaxPart)
		if err == nil {
			return data, h.size, nil
		}
		// It was evicted in between.
	}
	return nil, 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// load loads an object once for all concurrent callers.
func (s *Objects) load(ctx context.Context, digest string) (*held, error) {
	s.gate.Lock()
	if s.life.Err() != nil {
		s.gate.Unlock()
		return nil, fmt.Errorf("%w: it was closed", ErrUnavailable)
	}
	s.loading.Add(1)
	s.gate.Unlock()
	ch := s.loads.DoChan(digest, func() (any, error) {
		// Not the caller's context, because others wait for the same load.
		ctx, cancel := context.WithTimeout(s.life, loadFor)
		defer cancel()
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if h := s.cache.get(digest); h != nil {
			return h, nil
		}
		h, err := s.store.load(ctx, digest)
		if err == nil {
			s.cache.put(h)
		}
		return h, err
	})
	return s.loaded(ctx, digest, ch)
}

func (s *Objects) loaded(ctx context.Context, digest string, ch <-chan singleflight.Result) (*held, error) {
	select {
	case r := <-ch:
		s.loading.Done()
		if r.Err != nil {
			if errors.Is(r.Err, ErrDamaged) {
				s.log.Error("an object is damaged and cannot be read until it is stored again", "digest", digest, "error", r.Err)
			}
			return nil, sentence(r.Err)
		}
		return r.Val.(*held), nil
	case <-ctx.Done():
		go func() { <-ch; s.loading.Done() }()
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
	}
}

// Close ends all loads and clears the cache.
func (s *Objects) Close() error {
	s.gate.Lock()
	s.stop()
	s.gate.Unlock()
	s.loading.Wait()
	s.cache.clear()
	return nil
}

// sentence wraps an error of the client library in one of this package.
func sentence(err error) error {
	for _, known := range []error{ErrNotFound, ErrTooLarge, ErrFull, ErrInvalid, ErrDamaged, ErrUnavailable} {
		if errors.Is(err, known) {
			return err
		}
	}
	if api, ok := errors.AsType[*jetstream.APIError](err); ok && api.ErrorCode == codeStoreFull {
		return fmt.Errorf("%w; store less, or wait until older objects expire: %w", ErrFull, err)
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// codeStoreFull is the server's error code of a full stream.
const codeStoreFull jetstream.ErrorCode = 10077
