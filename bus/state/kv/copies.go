package kv

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Copies counts the servers that a stream is kept on, its leader among them, by how well they do.
type Copies struct {
	// Whole have all of it, or will in a moment.
	Whole int
	// Behind lack so much that they are still catching up.
	Behind int
	// Unheard were not heard of lately: they are down, or cut off, or the leader is.
	Unheard int
}

const (
	// behindFrom is from how many missing entries on a copy is behind. A few are always on
	// their way where much is written.
	behindFrom = 1000
	// unheardFrom is from when on a server was not heard of: leaders ask the others once a second.
	unheardFrom = 10 * time.Second
)

// CopiesOf asks the leader of a stream. Where nobody leads it, nothing is known of any copy;
// a stream that is not there has none.
func CopiesOf(ctx context.Context, js jetstream.JetStream, stream string) (Copies, error) {
	b := &Bucket{js: js, stream: stream, api: APIPrefix(js.Options())}
	a, err := b.look(ctx, struct{}{})
	if refused, ok := errors.AsType[*jetstream.APIError](err); ok && refused.ErrorCode == jetstream.JSErrCodeStreamNotFound {
		return Copies{}, nil
	}
	if err != nil {
		return Copies{}, err
	}
	return a.copies(), nil
}

func (a *infoAnswer) copies() (c Copies) {
	of := max(a.Config.Replicas, 1)
	if of > 1 && a.Cluster.Leader == "" {
		return Copies{Unheard: of}
	}
	c.Whole = 1 // the leader
	for _, r := range a.Cluster.Replicas {
		switch {
		case r.Offline, r.Active <= 0, time.Duration(r.Active) >= unheardFrom:
			c.Unheard++
		case r.Lag >= behindFrom:
			c.Behind++
		default:
			c.Whole++
		}
	}
	return c
}
