package workers

import (
	"bytes"
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/action"
)

// maxHistories limits the conversations in use by handlers, in bytes. Calls wait within
// their deadlines until there is room.
const maxHistories = 4 * schema.MaxHistory

// history is a batch's conversation, assembled once for all its hooks.
type history struct {
	mu   sync.Mutex // guards the fields below, and is held during assembly
	all  jsontext.Value
	room int64 // its share of maxHistories
}

// eventFor returns the event as a hook receives it. Hooks that need the conversation get
// it whole, and others without it. The same holds for the runtime's own payload, which a
// shim sends if it does not know which hooks need it.
func (j *job) eventFor(ctx context.Context, l *loaded, e *schema.Event) (*schema.Event, error) {
	if e.Native != "" && !l.native {
		own := *e
		own.Native = ""
		e = &own
	}
	if l.action && e.HookType.HasTool() {
		facts, err := schema.Marshal(action.Parse(e))
		if err != nil {
			return nil, fmt.Errorf("the facts of the call: %w", err)
		}
		own := *e
		own.Action = facts
		e = &own
	}
	file := schema.HistoryFile(e.HistoryRef)
	switch {
	case len(e.History) == 0 && (e.HistoryRef == "" || file), l.history && (e.HistoryRef == "" || file):
		return e, nil
	}
	own := *e
	own.History = nil
	if !file {
		own.HistoryRef = ""
	}
	if !l.history {
		return &own, nil
	}
	var err error
	if own.History, err = j.conversation(ctx, e); err != nil {
		return nil, fmt.Errorf("%s: %w", schema.HistoryMissing, err)
	}
	return &own, nil
}

// conversation returns the conversation that the event's reference and end make up.
func (j *job) conversation(ctx context.Context, e *schema.Event) (jsontext.Value, error) {
	h := &j.history
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all != nil {
		return h.all, nil
	}
	refs, err := schema.HistoryParts(e.HistoryRef)
	if err != nil {
		return nil, err
	}
	size := int64(len(e.History) + 2)
	for _, o := range refs {
		size += o.Size
	}
	if h.room == 0 {
		if err := j.w.histories.Acquire(ctx, size); err != nil {
			return nil, errors.New("the conversations of other calls use all the memory that this worker has for conversations")
		}
		h.room = size
	}
	parts, err := j.w.fetchAll(ctx, refs)
	if err != nil {
		return nil, err
	}
	h.all, err = together(parts, e.History, size)
	return h.all, err
}

// fetchAll fetches parts, several at a time. A started fetch continues after an error, because
// other calls may wait for it.
func (w *Worker) fetchAll(ctx context.Context, refs []schema.Object) ([]*part, error) {
	all, running := errgroup.WithContext(ctx)
	all.SetLimit(partsAtOnce)
	parts := make([]*part, len(refs))
	for i, o := range refs {
		if parts[i] = w.parts.cached(o.Digest); parts[i] != nil {
			continue
		}
		all.Go(func() (err error) {
			if running.Err() == nil { // otherwise it is useless now
				parts[i], err = w.parts.get(running, o)
			}
			return err
		})
	}
	err := all.Wait()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return parts, nil
}

// together joins parts, and the messages after them, into one list.
func together(parts []*part, end jsontext.Value, size int64) (jsontext.Value, error) {
	list := append(make([]byte, 0, size), '[')
	var pieces []byte // of a message that spans several parts
	for _, p := range parts {
		if p.whole && len(pieces) == 0 {
			list = appendLines(list, p.data)
			continue
		}
		if pieces = append(pieces, p.data...); pieces[len(pieces)-1] != '\n' {
			continue
		}
		if err := schema.CheckHistory(pieces); err != nil {
			return nil, err
		}
		list, pieces = appendLines(list, pieces), nil
	}
	if len(pieces) > 0 {
		return nil, errors.New("its last message is incomplete")
	}
	end = bytes.TrimSpace(end)
	if end = bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimPrefix(end, []byte("[")), []byte("]"))); len(end) > 0 {
		list = append(list, end...)
	} else if len(list) > 1 {
		list = list[:len(list)-1] // the last comma
	}
	return append(list, ']'), nil
}

// appendLines appends lines, each followed by a comma.
func appendLines(list, lines []byte) []byte {
	from := len(list)
	list = append(list, lines...)
	for {
		at := bytes.IndexByte(list[from:], '\n')
		if at < 0 {
			return list
		}
		list[from+at] = ','
		from += at + 1
	}
}

// brokers read parts of conversations for workers without access to the store.
type brokers struct{ nc *nats.Conn }

// partPause is the pause before another broker is asked after an error.
const partPause = 100 * time.Millisecond

// Part asks brokers until one returns the part or answers that it does not exist, or ctx ends.
func (b brokers) Part(ctx context.Context, digest string, offset int64) (data []byte, size int64, err error) {
	subject, err := bus.ControlSubject(schema.VerbPart, "")
	if err != nil {
		return nil, 0, err
	}
	for {
		var answer schema.FetchAnswer
		err := bus.Insist(ctx, b.nc, subject, &schema.PartRequest{Digest: digest, Offset: offset}, &answer)
		if err == nil {
			return answer.Data, answer.Size, nil
		}
		refused, ok := errors.AsType[*schema.ControlError](err)
		lasting := ok && (refused.Code == schema.CodeBadRequest || refused.Code == schema.CodeNotFound)
		if lasting || b.nc.IsClosed() || !pause(ctx, partPause/2+rand.N(partPause)) {
			return nil, 0, err
		}
	}
}

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
