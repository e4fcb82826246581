package record

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/state/kv"
)

// Name is the stream's name.
const Name = "hook_record"

// What the stream keeps unless it is said otherwise, and the least that makes sense.
const (
	DefaultAge   = 7 * 24 * time.Hour
	DefaultBytes = 1 << 30
	MinAge       = time.Minute
	MinBytes     = 1 << 20
)

const (
	// parts is which part of the server's room the stream takes where DefaultBytes
	// would be more than that.
	parts = 8
	// repeatFor is for how long a message that is published again is known.
	repeatFor = 2 * time.Minute
	// maxMessage is the largest message: a full one, and a large record more.
	maxMessage = maxBytes + maxRecord + 64<<10
)

// Limits are what the stream keeps.
type Limits struct {
	// Age is for how long, Bytes how much; 0: [DefaultAge], [DefaultBytes].
	Age   time.Duration
	Bytes int64
	// Replicas is how many servers keep it; 0: one.
	Replicas int
	// Room is how much the server may store of everything together, of which a stream
	// takes its share where that is less; 0: plenty.
	Room int64
}

func (l Limits) config() jetstream.StreamConfig {
	age, bytes := l.Age, l.Bytes
	if age == 0 {
		age = DefaultAge
	}
	if bytes == 0 {
		bytes = kv.Share(l.Room, parts, DefaultBytes, MinBytes)
	}
	return jetstream.StreamConfig{
		Name: Name, Description: "what the hook fabric decided", Subjects: []string{bus.RecordsWildcard},
		Storage: jetstream.FileStorage, Replicas: max(l.Replicas, 1),
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardOld, MaxAge: age, MaxBytes: bytes, MaxMsgSize: maxMessage,
		Duplicates: min(repeatFor, age), DenyDelete: true, DenyPurge: true,
	}
}

// instead is what a stream is to keep that keeps to have. It never has fewer copies: others may
// rely on them. How much it keeps is changed only by who says so: brokers have disks of different sizes.
func (l Limits) instead(have jetstream.StreamConfig) jetstream.StreamConfig {
	want := l.config()
	have.MaxAge, have.Duplicates, have.Replicas = want.MaxAge, want.Duplicates, max(want.Replicas, have.Replicas)
	if l.Bytes > 0 {
		have.MaxBytes = want.MaxBytes
	}
	have.Compression = want.Compression // messages are packed: a server that packs blocks of them once more writes everything twice
	return have
}

// open makes the stream, or opens the one that is there; keep has it keep to l from now on.
// It returns what the stream keeps: where there is no room for all of it, less.
func open(ctx context.Context, js jetstream.JetStream, l Limits, keep bool) (*jetstream.StreamInfo, error) {
	want := l.config()
	s, err := js.Stream(ctx, Name)
	for errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = js.CreateStream(ctx, want)
		switch {
		case kv.NoRoom(err) && want.MaxBytes/2 >= MinBytes:
			want.MaxBytes /= 2
			err = jetstream.ErrStreamNotFound
		case errors.Is(err, jetstream.ErrStreamNameAlreadyInUse):
			s, err = js.Stream(ctx, Name) // another broker was faster, with limits of its own
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening the stream %s: %w", Name, err)
	}
	is := s.CachedInfo()
	if !keep {
		return is, nil
	}
	keeps := l.instead(is.Config)
	if have := is.Config; have.MaxAge == keeps.MaxAge && have.MaxBytes == keeps.MaxBytes && have.Replicas == keeps.Replicas && have.Compression == keeps.Compression {
		return is, nil
	}
	s, err = js.UpdateStream(ctx, keeps)
	if kv.NoRoom(err) {
		return is, nil // it goes on with what it has
	}
	if err != nil {
		return nil, fmt.Errorf("changing what the stream %s keeps: %w", Name, err)
	}
	return s.CachedInfo(), nil
}
