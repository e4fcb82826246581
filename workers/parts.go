package workers

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/hookfabric/hookfabric/schema"
)

// Parts reads parts of conversations from the fabric's store, by their digests. Agents'
// clients put them there. [objects.Objects] implements it.
type Parts interface {
	// Part returns data of a part from offset on, perhaps not to its end, and the size of
	// the whole part.
	Part(ctx context.Context, digest string, offset int64) (data []byte, size int64, err error)
}

const (
	// maxParts limits the cached parts, in bytes. The next event of a conversation needs
	// the same parts.
	maxParts = 64 << 20
	// partTime is the time limit for fetching one part.
	partTime = 30 * time.Second
	// partsAtOnce is how many parts of one conversation are fetched at a time.
	partsAtOnce = 8
)

// part is one immutable part.
type part struct {
	digest string
	data   []byte
	// whole means that it has complete messages. Other parts have a piece of one message.
	whole bool
}

// A partStore fetches parts and caches the most recently used.
type partStore struct {
	fetching singleflight.Group

	mu    sync.Mutex // guards the fields below
	from  Parts      // nil: no access to the store
	order list.List
	at    map[string]*list.Element
	bytes int64
}

// errNoParts means that the worker has no access to the store.
var errNoParts = errors.New("this worker has no access to the store of conversations; set Options.Parts, or serve with Run")

// setSource sets the store.
func (s *partStore) setSource(from Parts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from = from
}

// source returns the store; nil: no access.
func (s *partStore) source() Parts {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.from
}

// get returns a part, from the cache or the store.
func (s *partStore) get(ctx context.Context, o schema.Object) (*part, error) {
	if p := s.cached(o.Digest); p != nil {
		return p, nil
	}
	ch := s.fetching.DoChan(o.Digest, func() (any, error) {
		// The fetch does not use the first caller's context, because other callers wait
		// for it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), partTime)
		defer cancel()
		p, err := s.fetch(ctx, o)
		if err == nil {
			s.add(p)
		}
		return p, err
	})
	select {
	case r := <-ch:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*part), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// fetch reads a part from the store and checks its digest.
func (s *partStore) fetch(ctx context.Context, o schema.Object) (*part, error) {
	from := s.source()
	if from == nil {
		return nil, errNoParts
	}
	p := &part{digest: o.Digest, data: make([]byte, 0, o.Size)}
	for int64(len(p.data)) < o.Size {
		data, size, err := from.Part(ctx, o.Digest, int64(len(p.data)))
		switch {
		case err != nil:
			return nil, fmt.Errorf("fetching a part of it: %w", err)
		case size != o.Size || len(data) == 0 || int64(len(p.data)+len(data)) > o.Size:
			return nil, fmt.Errorf("its part %s does not have the %d bytes that the event names", o.Digest, o.Size)
		}
		p.data = append(p.data, data...)
	}
	sum := sha256.Sum256(p.data)
	if "sha256-"+hex.EncodeToString(sum[:]) != o.Digest {
		return nil, fmt.Errorf("its part %s does not match its digest", o.Digest)
	}
	p.whole = schema.CheckHistory(p.data) == nil
	return p, nil
}

// cached returns a part from the cache; nil: it is not there.
func (s *partStore) cached(digest string) *part {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.at[digest]
	if at == nil {
		return nil
	}
	s.order.MoveToBack(at)
	return at.Value.(*part)
}

// add adds a part to the cache, and removes the least recently used ones.
func (s *partStore) add(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = map[string]*list.Element{}
	}
	if s.at[p.digest] != nil {
		return
	}
	s.at[p.digest] = s.order.PushBack(p)
	s.bytes += int64(len(p.data))
	for s.bytes > maxParts {
		oldest := s.order.Remove(s.order.Front()).(*part)
		delete(s.at, oldest.digest)
		s.bytes -= int64(len(oldest.data))
	}
}
