package kv

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A Bucket is a key-value bucket whose reads go to its leader.
type Bucket struct {
	js     jetstream.JetStream
	store  jetstream.KeyValue
	stream string
	// prefix begins the subjects of keys, api those of requests. moved precedes the subjects of
	// writes.
	prefix, api, moved string
	maxBytes           int64
	*Stored            // the results of writes
}

// At returns an existing bucket, without a request.
func At(js jetstream.JetStream, name string) *Bucket {
	b := &Bucket{js: js, stream: "KV_" + name, Stored: &Stored{Stream: "KV_" + name}, prefix: "$KV." + name + ".", api: APIPrefix(js.Options())}
	if b.api != jetstream.DefaultAPIPrefix {
		b.moved = b.api
	}
	return b
}

// Open creates or opens a bucket. An existing bucket keeps its limits, except that it gets more
// replicas if c.Replicas is higher. Open waits for a JetStream that is starting. If the server has no
// space for c.MaxBytes, Open tries half of it, and so on down to least; 0: c.MaxBytes.
func Open(ctx context.Context, js jetstream.JetStream, c jetstream.KeyValueConfig, least int64) (*Bucket, error) {
	return Patiently(ctx, "opening the bucket "+c.Bucket, Opening, func(ctx context.Context) (*Bucket, error) {
		store, err := open(ctx, js, c, least)
		if err != nil {
			return nil, err
		}
		s, err := store.Status(ctx)
		if err != nil {
			return nil, err
		}
		if c.LimitMarkerTTL > 0 && (s.LimitMarkerTTL() <= 0 || s.LimitMarkerTTL() > c.LimitMarkerTTL) {
			return nil, fmt.Errorf("its delete markers live for %v, and no key can have a shorter TTL; set the marker TTL to %v, or delete the bucket to start with an empty one",
				s.LimitMarkerTTL(), c.LimitMarkerTTL)
		}
		b := At(js, c.Bucket)
		b.store, b.maxBytes = store, s.Config().MaxBytes
		return b, Grow(ctx, js, b.stream, c.Replicas)
	})
}

func open(ctx context.Context, js jetstream.JetStream, c jetstream.KeyValueConfig, least int64) (jetstream.KeyValue, error) {
	// Open first, because creating reserves the space a second time, which a small disk does not have.
	store, err := js.KeyValue(ctx, c.Bucket)
	if !errors.Is(err, jetstream.ErrBucketNotFound) {
		return store, err
	}
	if least <= 0 {
		least = c.MaxBytes
	}
	for i := 0; ; i++ {
		store, err = js.CreateKeyValue(ctx, c)
		if err != nil {
			// Another process may be creating it, which reserves its space first.
			if there, kerr := js.KeyValue(ctx, c.Bucket); kerr == nil {
				return there, nil
			}
		}
		switch {
		case errors.Is(err, jetstream.ErrBucketExists):
			return js.KeyValue(ctx, c.Bucket)
		case !NoRoom(err):
			return store, err
		case c.MaxBytes/2 < least && i < Attempts/2:
			if err := Again(ctx, i); err != nil {
				return nil, err
			}
			continue
		case c.MaxBytes/2 < least:
			return nil, fmt.Errorf("it needs %d MiB, and the server has less; free space on the server's disk, or use another disk: %w", least>>20, err)
		}
		c.MaxBytes /= 2
	}
}

// Grow raises the number of replicas of a stream. It never lowers it, because others rely on them.
func Grow(ctx context.Context, js jetstream.JetStream, stream string, replicas int) error {
	if replicas <= 1 {
		return nil
	}
	s, err := js.Stream(ctx, stream)
	if err != nil {
		return err
	}
	c := s.CachedInfo().Config
	if c.Replicas >= replicas {
		return nil
	}
	c.Replicas = replicas
	_, err = js.UpdateStream(ctx, c)
	return err
}

// Share returns the size of a new bucket: most, or one of parts of the server's space if that is less,
// but at least least; a room of 0 or less is unlimited space.
func Share(room, parts, most, least int64) int64 {
	if room <= 0 {
		return most
	}
	return max(min(most, room/parts), least)
}

// PercentOf returns a percentage of a bound, without overflow.
func PercentOf(bound int64, percent int) int64 {
	return bound/100*int64(percent) + bound%100*int64(percent)/100
}

// Store returns the bucket of the client library, if it was opened here. Its reads may be older than
// acknowledged writes.
func (b *Bucket) Store() jetstream.KeyValue { return b.store }

// MaxBytes returns the size limit of the bucket; 0: unknown, or unlimited.
func (b *Bucket) MaxBytes() int64 { return max(b.maxBytes, 0) }

// Within reports whether the bucket is filled to less than a percentage.
func (b *Bucket) Within(ctx context.Context, percent int) (bool, error) {
	info, err := b.Info(ctx)
	return err != nil || b.MaxBytes() == 0 || info.Bytes < PercentOf(b.MaxBytes(), percent), err
}

// DiscardOld makes a full bucket delete its oldest keys. Otherwise it rejects writes. A cluster may
// not answer all of several brokers that change it at once; they read again and find it changed.
func (b *Bucket) DiscardOld(ctx context.Context) error {
	_, err := Patiently(ctx, "changing the bucket "+b.stream, Opening, func(ctx context.Context) (struct{}, error) {
		s, err := b.js.Stream(ctx, b.stream)
		if err != nil {
			return struct{}{}, err
		}
		c := s.CachedInfo().Config
		if c.Discard == jetstream.DiscardOld {
			return struct{}{}, nil
		}
		c.Discard = jetstream.DiscardOld
		_, err = b.js.UpdateStream(ctx, c)
		return struct{}{}, err
	})
	return err
}

// ask sends a request about the bucket's stream to its leader.
func (b *Bucket) ask(ctx context.Context, verb string, request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, TryFor)
	defer cancel()
	body, err := schema.Marshal(request)
	if err != nil {
		return err
	}
	m, err := b.js.Conn().RequestMsgWithContext(ctx, &nats.Msg{Subject: b.api + verb + "." + b.stream, Data: body})
	if err != nil {
		return err
	}
	return schema.Unmarshal(m.Data, answer)
}

// APIPrefix returns the prefix of JetStream's API subjects, which a domain or an import can change.
func APIPrefix(o jetstream.JetStreamOptions) string {
	switch {
	case o.Domain != "":
		return "$JS." + o.Domain + ".API."
	case o.APIPrefix != "":
		return strings.TrimSuffix(o.APIPrefix, ".") + "."
	}
	return jetstream.DefaultAPIPrefix
}
