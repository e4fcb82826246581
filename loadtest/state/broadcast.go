package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/loadtest/measure"
)

// Broadcast is what one item for all agents came to.
type Broadcast struct {
	Agents int `json:"agents"`
	// Writes is how many messages the streams of items and of cursors took for it.
	Writes uint64 `json:"writes"`
	// Bytes is how much the items' stream grew.
	Bytes uint64 `json:"bytes"`
	// Reached is how many agents were given it, each once, after Passes calls of
	// each: more than one where machines are too busy to be in time.
	Reached int `json:"reached"`
	Passes  int `json:"passes"`
}

// OK reports whether one write was enough for all.
func (b *Broadcast) OK() bool { return b.Writes == 1 && b.Reached == b.Agents }

// The streams of the buckets of items and of cursors.
const (
	itemStream   = "KV_hook_injections"
	cursorStream = "KV_hook_sequences"
)

// broadcast has many agents be seen, and then tells them all one thing.
func (o *Options) broadcast(ctx context.Context, r *Report) (err error) {
	// What is written is counted, not timed: that all agents ask at once must not
	// be a test of the disk.
	s, err := o.alone(ctx, "broadcast", relaxed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	r.Broadcast = &Broadcast{Agents: o.Crowd}
	everyone := Telling{Do: ask, Callers: many, Calls: o.Crowd, Prefix: "crowd-", Agents: o.Crowd, Items: 0}
	if _, err := s.told(ctx, everyone); err != nil {
		return err
	}
	js, nc, err := s.streams(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	before, bytes, err := s.quiet(ctx, js)
	if err != nil {
		return err
	}
	if _, err := s.told(ctx, Telling{Do: broadcast, Callers: 1, Calls: 1}); err != nil {
		return err
	}
	after, grown, err := s.quiet(ctx, js)
	if err != nil {
		return err
	}
	r.Broadcast.Writes, r.Broadcast.Bytes = after-before, grown-bytes
	everyone.Items, everyone.Once = 1, true
	if err := o.reached(ctx, s, r.Broadcast, everyone); err != nil {
		return err
	}
	_, err = s.told(ctx, everyone) // and nobody is told twice
	return err
}

// reached has everybody ask until all were told, for a while: calls go on
// without what cannot be read in time, and what they took along comes again
// when its lease has ended.
func (o *Options) reached(ctx context.Context, s *site, b *Broadcast, everyone Telling) error {
	for end := time.Now().Add(restFor); b.Reached < b.Agents && time.Now().Before(end); b.Passes++ {
		f, err := s.told(ctx, everyone)
		if err != nil {
			return err
		}
		b.Reached = int(f.Calls - f.Late)
		o.say("broadcast: delivered to %d of %d agents", b.Reached, b.Agents)
		if b.Reached < b.Agents && !measure.Pause(ctx, settling) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// quiet is how many messages were ever written to the streams of what waits and
// of who got what of it, and how large the items' is, once nothing is written any more.
func (s *site) quiet(ctx context.Context, js jetstream.JetStream) (messages, bytes uint64, err error) {
	for last := ^uint64(0); messages != last; {
		last = messages
		if !measure.Pause(ctx, settling) {
			return 0, 0, context.Cause(ctx)
		}
		if messages, bytes, err = written(ctx, js); err != nil {
			return 0, 0, err
		}
	}
	return messages, bytes, nil
}

func written(ctx context.Context, js jetstream.JetStream) (messages, bytes uint64, err error) {
	list := js.ListStreams(ctx)
	for info := range list.Info() {
		switch info.Config.Name {
		case itemStream:
			bytes = info.State.Bytes
			messages += info.State.LastSeq
		case cursorStream:
			messages += info.State.LastSeq
		}
	}
	if err := list.Err(); err != nil {
		return 0, 0, fmt.Errorf("reading the streams: %w", err)
	}
	return messages, bytes, nil
}
