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
	// A part ends behind a message that makes it as large as partMost, or that is
	// picked once it has partLeast. What picks a message is the message alone, so
	// that what is cut out or changed moves the ends of a few parts only.
	partLeast = schema.HistoryPart / 2
	partMost  = 2 * schema.HistoryPart
	// largeMessage is how long a message is that is a part of its own.
	largeMessage = 512 << 10
)

// cut cuts a conversation into parts, of which none of a large message has more
// than so many bytes, and what comes behind the last one. Lines are messages, each
// with a line feed behind it.
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

// mostPart is how large a part may be: as base64 it is to fit into a message of the
// server, which may be somebody else's and take less than ours.
func (c *Client) mostPart() int {
	if most := int(c.nc.MaxPayload()) - keepRoom; most > 0 {
		return max(min(schema.MaxPart, most/4*3), partMost)
	}
	return schema.MaxPart // it is not connected yet
}

// picked reports whether a part may end behind a message: with the likelihood of
// its length against partLeast, so that parts come out alike whatever messages are.
func picked(line []byte) bool {
	sum := crc32.Checksum(line, crc32.MakeTable(crc32.Castagnoli))
	return uint64(sum)*partLeast < uint64(len(line))<<32
}

const (
	// keepTry is how long one part waits for its answer before it is sent again,
	// keepFor how long all of an event do at most, and keepAtOnce how many travel.
	keepTry    = time.Second
	keepFor    = 5 * time.Second
	keepAtOnce = 4
	// keepTries is how often one is sent that has no room at the moment: others may
	// only be under way.
	keepTries = 3
	// keepRoom is what a request has beside the part.
	keepRoom = 4 << 10
	// keepAgain is how long after a refusal none is sent.
	keepAgain = 5 * time.Second
	// knownFor is how long a part that was stored is named without asking. It stays
	// for twice that at least.
	knownFor = 30 * time.Minute
	// maxKnown bounds the parts that are known.
	maxKnown = 1 << 14
	// coldParts is how many parts that are not known make one ask whether the store
	// has them, before they travel: their conversation was another process's.
	coldParts = 4
)

// stored are the parts that are known to be in the fabric's store.
type stored struct {
	mu     sync.Mutex // guards what follows
	fabric string     // whose store it is
	until  map[string]time.Time
	// refused is why nothing is stored until again.
	refused error
	again   time.Time
}

// of takes in who answers: a new fabric has a new store.
func (s *stored) of(fabric string) {
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

// missing are the indexes of parts that are not known, or why none can be stored now.
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

// forget has parts asked for again: some hook could not have them.
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
	s.refused, s.again = err, time.Now().Add(keepAgain)
}

// keep sees to it that parts of an agent's conversation are in the fabric's store.
func (c *Client) keep(ctx context.Context, agent string, parts [][]byte) ([]schema.Object, error) {
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
	ctx, cancel := context.WithTimeoutCause(ctx, min(left/4, keepFor), errLate)
	defer cancel()
	cold := len(missing) > coldParts
	if cold {
		if cold, err = c.keeps(ctx, agent, &schema.KeepRequest{Digest: all[missing[0]].Digest, Size: all[missing[0]].Size}); err != nil {
			return nil, err
		}
	}
	return all, c.keepAll(ctx, missing, func(ctx context.Context, i int) error {
		o := all[i]
		known := false
		if cold {
			var err error
			if known, err = c.keeps(ctx, agent, &schema.KeepRequest{Digest: o.Digest, Size: o.Size}); err != nil {
				return err
			}
		}
		if !known {
			if _, err := c.keeps(ctx, agent, &schema.KeepRequest{Data: parts[i], Digest: o.Digest}); err != nil {
				return err
			}
		}
		c.stored.note(o.Digest)
		return nil
	})
}

// keepAll does it for several parts at a time. After an error no other one begins.
func (c *Client) keepAll(ctx context.Context, missing []int, one func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, keepAtOnce)
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

// keeps sends one request until it is answered, or the time is over, and reports
// whether the part is there. What was refused is not sent again for a while.
func (c *Client) keeps(ctx context.Context, agent string, r *schema.KeepRequest) (bool, error) {
	tries := 0
	for wait := controlPause; ; wait = min(2*wait, controlPauseMost) {
		tries++
		answer := &schema.KeepAnswer{}
		try, cancel := context.WithTimeout(ctx, keepTry)
		err := c.control(try, about{verb: schema.VerbKeep, agent: agent}, r, answer)
		cancel()
		said, refused := errors.AsType[*schema.ControlError](err)
		switch {
		case err == nil && answer.Digest != r.Digest:
			return false, fmt.Errorf("the fabric calls it %.80q", answer.Digest)
		case err == nil:
			return answer.Known, nil
		case refused && (tries == keepTries || said.Code != schema.CodeUnavailable):
			c.stored.refuse(said)
			return false, said
		case errors.Is(err, nats.ErrMaxPayload): // it never will go
			return false, fmt.Errorf("its part has %d bytes, and the server takes messages of at most %d", len(r.Data), c.nc.MaxPayload())
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		case !c.rest(ctx, jitter(wait)):
			return false, err
		}
	}
}
