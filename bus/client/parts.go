package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/schema"
)

const (
	// A part ends after a message that makes it at least partMost long, or after a picked
	// message once it has partLeast. Whether a message is picked depends on it alone, so
	// that a removed or changed message changes only a few parts.
	partLeast = schema.HistoryPart / 2
	partMost  = 2 * schema.HistoryPart
	// largeMessage is the length from which a message is a part of its own.
	largeMessage = 512 << 10
)

// cut cuts a conversation into parts, and returns the rest after the last one. Parts of a
// large message have at most most bytes. Lines are messages with a line feed at the end.
func cut(lines [][]byte, most int) (parts [][]byte, rest [][]byte) {
	var part []byte
	for i, line := range lines {
		if len(line) > largeMessage {
			if len(part) > 0 {
				parts, part = append(parts, part), nil
			}
			for len(line) > most {
				parts, line = append(parts, line[:most]), line[most:]
			}
			parts, rest = append(parts, line), lines[i+1:]
			continue
		}
		part = append(part, line...)
		if len(part) >= partMost || len(part) >= partLeast && picked(line) {
			parts, part, rest = append(parts, part), nil, lines[i+1:]
		}
	}
	if len(parts) == 0 {
		rest = lines
	}
	return parts, rest
}

// mostPart returns the largest part, which must fit into a message of the server as
// base64. Servers may accept shorter messages than ours.
func (c *Client) mostPart() int {
	if most := int(c.nc.MaxPayload()) - storeRoom; most > 0 {
		return max(min(schema.MaxPart, most/4*3), partMost)
	}
	return schema.MaxPart // it is not connected yet
}

// picked reports whether a part may end after a message. The probability is its length
// divided by partLeast, so that the size of parts does not depend on that of messages.
func picked(line []byte) bool {
	sum := crc32.Checksum(line, crc32.MakeTable(crc32.Castagnoli))
	return uint64(sum)*partLeast < uint64(len(line))<<32
}

const (
	// storeTry is the timeout for one part before it is sent again, storeFor the limit
	// for all parts of an event, and storeAtOnce the number in progress.
	storeTry    = time.Second
	storeFor    = 5 * time.Second
	storeAtOnce = 4
	// storeTries is how often a part is sent for which there is no room, because other
	// parts may still be in progress.
	storeTries = 3
	// storeRoom is the size of a request without the part.
	storeRoom = 4 << 10
	// storeAgain is the pause after a refusal.
	storeAgain = 5 * time.Second
	// knownFor is how long a stored part is named without asking. The store keeps it at
	// least twice as long.
	knownFor = 30 * time.Minute
	// maxKnown limits the known parts.
	maxKnown = 1 << 14
	// coldParts is the number of unknown parts above which the client first asks whether
	// the store has them, because another process may have stored the conversation.
	coldParts = 4
)

// stored caches which parts are in the fabric's store.
type stored struct {
	mu     sync.Mutex // guards the fields below
	fabric string     // the store's fabric
	until  map[string]time.Time
	// refused is why nothing is stored before again.
	refused error
	again   time.Time
}

// setFabric records which fabric answers. A new fabric has a new store.
func (s *stored) setFabric(fabric string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if fabric == "" || fabric == s.fabric {
		return
	}
	if s.fabric != "" {
		s.until, s.refused, s.again = nil, nil, time.Time{}
	}
	s.fabric = fabric
}

// missing returns the indexes of unknown parts, or an error if parts cannot be stored
// now.
func (s *stored) missing(all []schema.Object) (missing []int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for i := range all {
		if !now.Before(s.until[all[i].Digest]) {
			missing = append(missing, i)
		}
	}
	if len(missing) > 0 && now.Before(s.again) {
		return nil, s.refused
	}
	return missing, nil
}

func (s *stored) note(digest string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil || len(s.until) >= maxKnown {
		s.until = map[string]time.Time{}
	}
	s.until[digest] = time.Now().Add(knownFor)
}

// forget removes parts from the cache, because some hook could not read them.
func (s *stored) forget(all []schema.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		delete(s.until, all[i].Digest)
	}
}

func (s *stored) refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused, s.again = err, time.Now().Add(storeAgain)
}

// storeParts makes sure that parts of an agent's conversation are in the fabric's store.
func (c *Client) storeParts(ctx context.Context, agent string, parts [][]byte) ([]schema.Object, error) {
	all := make([]schema.Object, len(parts))
	for i, p := range parts {
		sum := sha256.Sum256(p)
		all[i] = schema.Object{Digest: "sha256-" + hex.EncodeToString(sum[:]), Size: int64(len(p))}
	}
	missing, err := c.stored.missing(all)
	if err != nil || len(missing) == 0 {
		return all, err
	}
	left := c.timeout
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, min(left/4, storeFor), errLate)
	defer cancel()
	cold := len(missing) > coldParts
	if cold {
		if cold, err = c.storePart(ctx, agent, &schema.KeepRequest{Digest: all[missing[0]].Digest, Size: all[missing[0]].Size}); err != nil {
			return nil, err
		}
	}
	return all, c.forEachPart(ctx, missing, func(ctx context.Context, i int) error {
		o := all[i]
		known := false
		if cold {
			var err error
			if known, err = c.storePart(ctx, agent, &schema.KeepRequest{Digest: o.Digest, Size: o.Size}); err != nil {
				return err
			}
		}
		if !known {
			if _, err := c.storePart(ctx, agent, &schema.KeepRequest{Data: parts[i], Digest: o.Digest}); err != nil {
				return err
			}
		}
		c.stored.note(o.Digest)
		return nil
	})
}

// forEachPart calls one for several parts at a time. After an error it starts no other.
func (c *Client) forEachPart(ctx context.Context, missing []int, one func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, storeAtOnce)
	var all sync.WaitGroup
	for _, i := range missing {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			defer func() { <-slots }()
			if err := one(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// storePart sends one request until it is answered or the time is over, and reports
// whether the part is stored. A refused part is not sent again for a while.
func (c *Client) storePart(ctx context.Context, agent string, r *schema.KeepRequest) (bool, error) {
	tries := 0
	for wait := controlPause; ; wait = min(2*wait, controlPauseMost) {
		tries++
		answer := &schema.KeepAnswer{}
		try, cancel := context.WithTimeout(ctx, storeTry)
		err := c.control(try, controlTarget{verb: schema.VerbKeep, agent: agent}, r, answer)
		cancel()
		refusal, refused := errors.AsType[*schema.ControlError](err)
		switch {
		case err == nil && answer.Digest != r.Digest:
			return false, fmt.Errorf("the fabric calls it %.80q", answer.Digest)
		case err == nil:
			return answer.Known, nil
		case refused && (tries == storeTries || refusal.Code != schema.CodeUnavailable):
			c.stored.refuse(refusal)
			return false, refusal
		case errors.Is(err, nats.ErrMaxPayload): // it can never be sent
			return false, fmt.Errorf("its part has %d bytes, and the server takes messages of at most %d", len(r.Data), c.nc.MaxPayload())
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case !c.sleep(ctx, jitter(wait)):
			return false, err
		}
	}
}
