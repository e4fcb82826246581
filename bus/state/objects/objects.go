package objects

import (
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
	// Bucket has what is too large for messages.
	Bucket = "hook_objects"
	// Histories has parts of conversations. They have a store of their own, so that
	// however many there are, what waits for agents finds room.
	Histories = "hook_histories"
)

// The bounds of an object and of one part of it.
const (
	MaxObject = 256 << 20
	MaxPart   = 1 << 20
)

const (
	// loadFor bounds how long an object is loaded, maxLoads how many are at once.
	loadFor  = 2 * time.Minute
	maxLoads = 4
)

// Errors are sentences that may be shown to whoever asked.
var (
	// ErrNotFound: there is no such object, or no longer.
	ErrNotFound = errors.New("there is no such object")
	// ErrTooLarge: it has more bytes than may be kept.
	ErrTooLarge = errors.New("the object is too large")
	// ErrFull: the store has no room left.
	ErrFull = errors.New("the object store is full")
	// ErrInvalid: there is no such part.
	ErrInvalid = errors.New("the object has no such part")
	// ErrDamaged: what is stored is not what it is called.
	ErrDamaged = errors.New("the stored object is damaged")
	// ErrUnavailable: the store could be neither read nor written in time.
	ErrUnavailable = errors.New("the object store cannot be reached now")
)

// Options say how objects are kept.
type Options struct {
	// Bucket is the store: [Bucket], also if it is empty, or [Histories].
	Bucket string
	// Replicas of the store; one that is there gets more, but never less; 0 is 1.
	Replicas int
	// Room is how much the server may store of everything together, of which buckets
	// that are made take their share; 0: plenty.
	Room int64
	// Logger hears of what can wait; nil is silence.
	Logger *slog.Logger
}

// Objects is content named by what it is: the same content is stored once.
type Objects struct {
	store store
	log   *slog.Logger
	// upload is held by who stores an object: of large ones one at a time, so that of
	// many who put the same one the others find it there.
	upload chan struct{}
	shelf  shelf

	// slots bound how many objects are loaded at once.
	slots chan struct{}
	loads singleflight.Group
	life  context.Context
	stop  context.CancelFunc
	// loading are the loads that go on; gate guards that none begins after Close.
	loading sync.WaitGroup
	gate    sync.Mutex
}

// Unstored returns why nothing was stored of what was written last; nil: it was.
func (s *Objects) Unstored() error {
	if err := s.store.stored.Failed(); err != nil {
		return fmt.Errorf("%s: %w", s.store.stream(), err)
	}
	return nil
}

// Anew forgets that: the server was mended.
func (s *Objects) Anew() { s.store.stored.Anew() }

// Open makes the store, or opens the one that is there.
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

// OpenExisting opens the store that a broker made.
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
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	life, stop := context.WithCancel(context.Background())
	return &Objects{store: newStore(js, planOf(o.Bucket)), log: log, upload: make(chan struct{}, planOf(o.Bucket).uploads), slots: make(chan struct{}, maxLoads), life: life, stop: stop}
}

// Put stores what r holds, if it is not there already. What is larger than a
// message lies in a temporary file meanwhile.
func (s *Objects) Put(ctx context.Context, r io.Reader) (schema.Object, error) {
	return s.PutWithin(ctx, r, 100)
}

// PutWithin is Put that leaves the rest of the store free: what is stored may take so many
// percent of it.
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

// Has returns nil if the object is there whole.
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

// Fresh reports whether the object is there whole, and will be for half of its
// life at least: one that is older is to be put again.
func (s *Objects) Fresh(ctx context.Context, o schema.Object) (bool, error) {
	f, err := s.store.find(ctx, o.Digest)
	if err != nil {
		return false, sentence(err)
	}
	return f.whole && f.size() == o.Size && s.store.clock.Age(f.stored) < s.store.plan.renewAfter, nil
}

// Part returns at most [MaxPart] bytes of an object, and how large it is. At its
// end there are none.
func (s *Objects) Part(ctx context.Context, digest string, offset int64) (data []byte, size int64, err error) {
	for range 3 {
		h := s.shelf.get(digest)
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
		// Others needed its place meanwhile.
	}
	return nil, 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// load gets an object from the store, for all who want it now.
func (s *Objects) load(ctx context.Context, digest string) (*held, error) {
	s.gate.Lock()
	if s.life.Err() != nil {
		s.gate.Unlock()
		return nil, fmt.Errorf("%w: it was closed", ErrUnavailable)
	}
	s.loading.Add(1)
	s.gate.Unlock()
	ch := s.loads.DoChan(digest, func() (any, error) {
		// Not the context of whoever was first: others wait for the same.
		ctx, cancel := context.WithTimeout(s.life, loadFor)
		defer cancel()
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if h := s.shelf.get(digest); h != nil {
			return h, nil
		}
		h, err := s.store.load(ctx, digest)
		if err == nil {
			s.shelf.put(h)
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

// Close forgets what was kept at hand.
func (s *Objects) Close() error {
	s.gate.Lock()
	s.stop()
	s.gate.Unlock()
	s.loading.Wait()
	s.shelf.clear()
	return nil
}

// sentence makes of an error of the client library one that may be shown.
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

// codeStoreFull is the server's code for a stream that has no room left.
const codeStoreFull jetstream.ErrorCode = 10077
