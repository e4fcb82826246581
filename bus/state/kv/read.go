package kv

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A Kind is the kind of a revision.
type Kind int

// The kinds. The zero Kind is a value.
const (
	// Put: the key has a value.
	Put Kind = iota
	// Deleted: the key was deleted or purged.
	Deleted
	// Lapsed: the key's TTL ended.
	Lapsed
)

// An Entry is one revision of a key. The zero Entry is that of a key that was never written, or whose
// marker has lapsed.
type Entry struct {
	Key      string
	Value    []byte
	Revision uint64
	// Created is the server's time of the write.
	Created time.Time
	Kind    Kind
	Header  nats.Header
}

// stored is the leader's answer with one message.
type stored struct {
	Message *struct {
		Subject string    `json:"subject"`
		Seq     uint64    `json:"seq"`
		Hdrs    []byte    `json:"hdrs"`
		Data    []byte    `json:"data"`
		Time    time.Time `json:"time"`
	} `json:"message"`
	Error *jetstream.APIError `json:"error"`
}

// wanted selects a message.
type wanted struct {
	Seq  uint64 `json:"seq,omitzero"`
	Last string `json:"last_by_subj,omitzero"`
	Next string `json:"next_by_subj,omitzero"`
}

var errNoMessage = errors.New("the answer names no message")

// Last reads a key from the leader.
func (b *Bucket) Last(ctx context.Context, key string) (Entry, error) {
	return b.get(ctx, wanted{Last: b.prefix + key})
}

// Revision reads one revision from the leader; the zero Entry: it does not exist.
func (b *Bucket) Revision(ctx context.Context, revision uint64) (Entry, error) {
	return b.get(ctx, wanted{Seq: revision})
}

// Next reads from the leader the first revision of any key from the given one on; the zero Entry: no
// later revision exists.
func (b *Bucket) Next(ctx context.Context, from uint64) (Entry, error) {
	return b.get(ctx, wanted{Seq: from, Next: b.prefix + ">"})
}

func (b *Bucket) get(ctx context.Context, w wanted) (Entry, error) {
	var s stored
	if err := b.ask(ctx, "STREAM.MSG.GET", w, &s); err != nil {
		return Entry{}, err
	}
	return s.entry(b.prefix)
}

// entry returns the revision in the answer.
func (s *stored) entry(prefix string) (Entry, error) {
	switch {
	case s.Error != nil && s.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return Entry{}, nil
	case s.Error != nil:
		return Entry{}, s.Error
	case s.Message == nil:
		return Entry{}, errNoMessage
	}
	m := s.Message
	var h nats.Header
	if len(m.Hdrs) > 0 {
		var err error
		if h, err = nats.DecodeHeadersMsg(m.Hdrs); err != nil {
			return Entry{}, err
		}
	}
	return Entry{Key: strings.TrimPrefix(m.Subject, prefix), Value: m.Data, Revision: m.Seq, Created: m.Time, Kind: kind(h), Header: h}, nil
}

// The headers of key-value buckets.
const (
	headerOp     = "KV-Operation"
	headerReason = "Nats-Marker-Reason"
	opPurge      = "PURGE"
)

// kind returns the kind of a revision by its headers.
func kind(h nats.Header) Kind {
	if h == nil {
		return Put
	}
	switch reason := h.Get(headerReason); {
	case reason == "MaxAge":
		return Lapsed
	case reason != "" || h.Get(headerOp) != "":
		return Deleted
	}
	return Put
}

// Info is the leader's description of the bucket.
type Info struct {
	// Last is the newest revision, 0 without one, Messages their number, and Bytes their size on
	// disk.
	Last, Messages uint64
	Bytes          int64
	// Now is the leader's time; zero: unknown.
	Now time.Time
	// Replicas is the number of servers that store it.
	Replicas int
}

type infoAnswer struct {
	State struct {
		Last     uint64            `json:"last_seq"`
		Messages uint64            `json:"messages"`
		Bytes    int64             `json:"bytes"`
		Subjects map[string]uint64 `json:"subjects"`
	} `json:"state"`
	Config struct {
		Replicas int `json:"num_replicas"`
	} `json:"config"`
	Cluster struct {
		Leader   string    `json:"leader"`
		Replicas []replica `json:"replicas"`
	} `json:"cluster"`
	Now   time.Time           `json:"ts"`
	Error *jetstream.APIError `json:"error"`
}

// A replica is a server that stores the stream besides its leader, as the leader sees it.
type replica struct {
	Offline bool   `json:"offline"`
	Active  int64  `json:"active"` // nanoseconds since the last contact; 0: never
	Lag     uint64 `json:"lag"`    // missing entries
}

func (a *infoAnswer) info() Info {
	return Info{Last: a.State.Last, Messages: a.State.Messages, Bytes: a.State.Bytes, Now: a.Now, Replicas: a.Config.Replicas}
}

// Info asks the leader for its description.
func (b *Bucket) Info(ctx context.Context) (Info, error) {
	a, err := b.look(ctx, struct{}{})
	return a.info(), err
}

func (b *Bucket) look(ctx context.Context, how any) (a infoAnswer, err error) {
	if err := b.ask(ctx, "STREAM.INFO", how, &a); err != nil {
		return a, err
	}
	if a.Error != nil {
		return a, a.Error
	}
	return a, nil
}

// matching is look with the keys that match filter.
func (b *Bucket) matching(ctx context.Context, filter string) (infoAnswer, error) {
	return b.look(ctx, map[string]string{"subjects_filter": b.prefix + filter})
}

// ledAgain is the interval at which Led asks again.
const ledAgain = 200 * time.Millisecond

// Led repeats [Bucket.LedSince] until it succeeds.
func (b *Bucket) Led(ctx context.Context, since time.Time) (Info, error) {
	for {
		info, err := b.LedSince(ctx, since)
		if err == nil || Rest(ctx, ledAgain) != nil {
			return info, err
		}
	}
}

// Prove stores w and returns a revision that includes everything that was stored before the call. A
// leader that is cut off cannot store it. If the bucket is full, the revision is that of a leader that
// has led since the call, so that a full store does not stop everything.
func (b *Bucket) Prove(ctx context.Context, w Write) (revision uint64, err error) {
	began := time.Now()
	revision, err = b.Write(ctx, w)
	if _, answered := errors.AsType[*jetstream.APIError](err); answered {
		info, err := b.Led(ctx, began)
		return info.Last, err
	}
	return revision, err
}

// LedSince returns the leader's description if since then it has had contact with a majority of the
// servers, which it asks once a second. It was then the only leader at that time. A leader that was cut
// off answers for ten seconds and more, and without a leader all servers answer.
func (b *Bucket) LedSince(ctx context.Context, since time.Time) (Info, error) {
	within := time.Since(since)
	a, err := b.look(ctx, struct{}{})
	if err != nil || a.Config.Replicas <= 1 {
		return a.info(), err
	}
	heard := 1 // the leader
	for _, r := range a.Cluster.Replicas {
		if r.Active > 0 && r.Active < within.Nanoseconds() {
			heard++
		}
	}
	if of := a.Config.Replicas; heard <= of/2 || a.Cluster.Leader == "" {
		return Info{}, fmt.Errorf("the leader of the stream %s had contact with %d of its %d servers in the last %v, itself included", b.stream, heard, of, within)
	}
	return a.info(), nil
}

var errTwoLeaders = errors.New("two servers claim to lead the stream, and their states differ")

// Gone returns nil if a revision of the key is gone, and the key has no value or a newer one. One answer
// must prove it: after a network cut two leaders may answer in turns, and one lacks revisions that the
// other has.
func (b *Bucket) Gone(ctx context.Context, key string, revision uint64) error {
	last, err := b.Last(ctx, key)
	switch {
	case err != nil:
		return err
	case last.Revision > revision, last.Revision == revision && last.Kind != Put:
		return nil
	case last.Revision > 0:
		return errTwoLeaders
	}
	a, err := b.matching(ctx, key)
	switch {
	case err != nil:
		return err
	case len(a.State.Subjects) > 0:
		return errTwoLeaders
	}
	return b.reached(a.info(), revision)
}

// reached returns nil if the leader has the revision, so that a missing earlier one is gone. A leader
// that was cut off, and a recreated bucket, may end earlier.
func (b *Bucket) reached(info Info, revision uint64) error {
	if info.Last < revision {
		return fmt.Errorf("the stream %s ends at %d, and %d was already read; if the stream was deleted and recreated, restart this process", b.stream, info.Last, revision)
	}
	return nil
}

const (
	// listings bounds how often keys are listed until the list is complete.
	listings = 20
	// listAgain is the interval from the third time on: servers that were cut off from each other
	// need a second to agree.
	listAgain = 100 * time.Millisecond
)

// Matching reads all keys that match filter, including those with only a marker, sorted by name. The
// list is at least as new as the newest entry in it: after a network cut servers with different states
// may answer in turns, and a list may lack keys.
func (b *Bucket) Matching(ctx context.Context, filter string) ([]Entry, error) {
	read, newest := map[string]Entry{}, uint64(0)
	for i := range listings {
		if i > 1 {
			if err := Rest(ctx, listAgain); err != nil {
				return nil, err
			}
		}
		a, err := b.matching(ctx, filter)
		if err != nil {
			return nil, err
		}
		whole := true
		for subj := range a.State.Subjects {
			key := strings.TrimPrefix(subj, b.prefix)
			if _, ok := read[key]; ok {
				continue
			}
			e, err := b.Last(ctx, key)
			if err != nil {
				return nil, err
			}
			if e.Revision == 0 {
				whole = false // it has just ended, or another server answered
				continue
			}
			read[key], newest = e, max(newest, e.Revision)
		}
		if whole && newest <= a.State.Last {
			return slices.SortedFunc(maps.Values(read), func(a, b Entry) int { return strings.Compare(a.Key, b.Key) }), nil
		}
	}
	return nil, errTwoLeaders
}
