package kv

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Copies counts the servers that store a stream, including its leader, by state.
type Copies struct {
	// Whole are the complete copies, or nearly complete ones.
	Whole int
	// Behind are copies that are still catching up.
	Behind int
	// Unheard are copies without recent contact: they, or the leader, are down or cut off.
	Unheard int
}

const (
	// behindFrom is how many missing entries make a copy behind. A few are always in transit.
	behindFrom = 1000
	// unheardFrom is how long a copy without contact is not unheard; leaders ask once a second.
	unheardFrom = 10 * time.Second
)

// CopiesOf asks the leader of a stream. Without a leader all copies are unheard. A stream that does
// not exist has none.
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
