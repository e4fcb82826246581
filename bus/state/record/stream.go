package record

import (
	"cmp"
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

// The defaults and the least values of the stream's limits.
const (
	DefaultAge   = 7 * 24 * time.Hour
	DefaultBytes = 1 << 30
	MinAge       = time.Minute
	MinBytes     = 1 << 20
)

const (
	// parts is the divisor of the server's space for the stream, if that is less than DefaultBytes.
	parts = 8
	// repeatFor is how long ids of messages are remembered.
	repeatFor = 2 * time.Minute
	// maxMessage is the largest message: a full one and one more large record.
	maxMessage = maxBytes + maxRecord + 64<<10
)

// Limits are the limits of the stream.
type Limits struct {
	// Age and Bytes limit age and size; 0: [DefaultAge], [DefaultBytes].
	Age   time.Duration
	Bytes int64
	// Replicas is how many servers store it; 0: one.
	Replicas int
	// Room is how many bytes the server may store in all, which may lower the default size; 0: unlimited.
	Room int64
}

func (l Limits) config() jetstream.StreamConfig {
	age, bytes := l.Age, l.Bytes
	age = cmp.Or(age, DefaultAge)
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

// instead returns the new configuration of an existing stream. It never has fewer replicas, because others may rely on them. The size
// changes only if l has one, because the disks of brokers differ.
func (l Limits) instead(have jetstream.StreamConfig) jetstream.StreamConfig {
	want := l.config()
	have.MaxAge, have.Duplicates, have.Replicas = want.MaxAge, want.Duplicates, max(want.Replicas, have.Replicas)
	if l.Bytes > 0 {
		have.MaxBytes = want.MaxBytes
	}
	have.Compression = want.Compression // messages are compressed already, and compressed blocks are written twice
	return have
}

// open creates or opens the stream; keep applies l to an existing one. Without enough space the stream is smaller. It returns the
// actual configuration.
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
		return is, nil // it keeps its limits
	}
	if err != nil {
		return nil, fmt.Errorf("changing what the stream %s keeps: %w", Name, err)
	}
	return s.CachedInfo(), nil
}
