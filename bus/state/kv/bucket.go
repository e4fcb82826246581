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

// A Bucket is a key-value bucket, as its leader knows it.
type Bucket struct {
	js     jetstream.JetStream
	store  jetstream.KeyValue
	stream string
	// prefix is what the subjects of keys begin with, api what those of requests
	// begin with, and moved what stands before a key's subject where it is written.
	prefix, api, moved string
	maxBytes           int64
	// stored hears what comes of writes.
	stored Stored
}

// At is the bucket of that name, which somebody made. It asks nobody.
func At(js jetstream.JetStream, name string) *Bucket {
	b := &Bucket{js: js, stream: "KV_" + name, prefix: "$KV." + name + ".", api: APIPrefix(js.Options())}
	if b.api != jetstream.DefaultAPIPrefix {
		b.moved = b.api
	}
	return b
}

// Open makes the bucket, or opens the one that is there, which keeps its own
// limits; only if c.Replicas is more than it has, more are made. It waits for a JetStream that is still starting. Where the server has
// no room for c.MaxBytes, half of it will do, and so on down to least; 0: nothing
// less will do.
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
	// Opened first: to create it would ask for its room a second time, which a
	// small disk does not have.
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
			// Somebody else may be making it, which takes its room before it is there.
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

// Grow has a stream kept on so many servers, if it is on fewer. That it is there
// already takes no change; it never shrinks, since that loses what others rely on.
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

// Share is how much a bucket takes that is made: most, or one of so many parts of
// the server's room where that is less, but at least the least. No room is plenty.
func Share(room, parts, most, least int64) int64 {
	if room <= 0 {
		return most
	}
	return max(min(most, room/parts), least)
}

// PercentOf is so many percent of a bound, however large or small that is.
func PercentOf(bound int64, percent int) int64 {
	return bound/100*int64(percent) + bound%100*int64(percent)/100
}

// Store is the bucket as the client library knows it, if it was opened here. What
// it gets may be older than what was acknowledged.
func (b *Bucket) Store() jetstream.KeyValue { return b.store }

// MaxBytes is how many bytes the bucket may hold; 0: that was not asked, or there
// is no bound.
func (b *Bucket) MaxBytes() int64 { return max(b.maxBytes, 0) }

// Within reports whether what the bucket holds takes less than so many percent of it.
func (b *Bucket) Within(ctx context.Context, percent int) (bool, error) {
	info, err := b.Info(ctx)
	return err != nil || b.MaxBytes() == 0 || info.Bytes < PercentOf(b.MaxBytes(), percent), err
}

// DiscardOld has the bucket make room when it is full, by taking the keys away
// that were written the longest ago. It refuses writes otherwise. A cluster does not
// answer all of several brokers that change it at one moment: who heard nothing looks
// again, and finds it changed.
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

// ask puts a request about the bucket's stream to its leader.
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

// APIPrefix is where JetStream takes requests, which a domain or an import may
// have moved.
func APIPrefix(o jetstream.JetStreamOptions) string {
	switch {
	case o.Domain != "":
		return "$JS." + o.Domain + ".API."
	case o.APIPrefix != "":
		return strings.TrimSuffix(o.APIPrefix, ".") + "."
	}
	return jetstream.DefaultAPIPrefix
}
