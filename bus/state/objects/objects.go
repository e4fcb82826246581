package objects

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/schema"
)

// Bucket is the object store of what is too large for messages.
const Bucket = "hook_objects"

// The bounds of an object and of one part of it.
const (
	MaxObject = 256 << 20
	MaxPart   = 1 << 20
)

// Errors are sentences that may be shown to whoever asked.
var (
	// ErrNotFound: there is no such object, or no longer.
	ErrNotFound = errors.New("there is no such object")
	// ErrTooLarge: it has more bytes than may be kept.
	ErrTooLarge = errors.New("the object is too large")
	// ErrUnavailable: the store could be neither read nor written in time.
	ErrUnavailable = errors.New("the object store can not be reached now")
)

// Options say how objects are kept.
type Options struct {
	// Replicas of the store, if it is made now; 0 is 1.
	Replicas int
	// Logger hears of what can wait; nil is silence.
	Logger *slog.Logger
}

// Objects is content named by what it is: the same content is stored once.
type Objects struct{}

var errNotBuilt = errors.New("not built yet")

// Open makes the store, or opens the one that is there.
func Open(ctx context.Context, js jetstream.JetStream, o Options) (*Objects, error) {
	return nil, errNotBuilt
}

// OpenExisting opens the store that a broker made.
func OpenExisting(ctx context.Context, js jetstream.JetStream, o Options) (*Objects, error) {
	return nil, errNotBuilt
}

// Put stores what r holds, if it is not there already.
func (s *Objects) Put(ctx context.Context, r io.Reader) (schema.Object, error) {
	return schema.Object{}, errNotBuilt
}

// Has returns nil if the object is there whole.
func (s *Objects) Has(ctx context.Context, o schema.Object) error { return errNotBuilt }

// Part returns at most [MaxPart] bytes of an object, and how large it is.
func (s *Objects) Part(ctx context.Context, digest string, offset int64) (data []byte, size int64, err error) {
	return nil, 0, errNotBuilt
}

// Close forgets what was kept at hand.
func (s *Objects) Close() error { return errNotBuilt }
