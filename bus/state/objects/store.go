package objects

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/hookfabric/hookfabric/bus/state/kv"
	"github.com/hookfabric/hookfabric/schema"
)

const (
	digestPrefix = "SHA-256="
	// chunkSize is the size of a chunk. The leader's answer with a chunk still fits into a message.
	chunkSize = 512 << 10
)

// A store reads and writes objects at the stream's leader.
type store struct {
	plan

	js    jetstream.JetStream
	api   string
	clock *kv.Clock
	// stored records the results of writes.
	stored *kv.Stored
}

func newStore(js jetstream.JetStream, p plan) store {
	return store{plan: p, js: js, api: kv.APIPrefix(js.Options()), clock: new(kv.Clock), stored: &kv.Stored{Stream: p.stream()}}
}

// found is what the leader has of an object.
type found struct {
	info jetstream.ObjectInfo
	// revision is that of the info; 0: there is no info.
	revision uint64
	// stored is the server's time of the info.
	stored time.Time
	// whole: all chunks exist.
	whole bool
}

func (f *found) size() int64 { return int64(f.info.Size) }

// answer has the needed fields of the leader's answers.
type answer struct {
	Message *struct {
		Seq  uint64    `json:"seq"`
		Data []byte    `json:"data"`
		Time time.Time `json:"time"`
	} `json:"message"`
	State struct {
		Subjects map[string]uint64 `json:"subjects"`
		Bytes    int64             `json:"bytes"`
	} `json:"state"`
	Config struct {
		MaxBytes int64 `json:"max_bytes"`
	} `json:"config"`
	Now   time.Time           `json:"ts"`
	Error *jetstream.APIError `json:"error"`
}

// ask sends a request about the stream to its leader.
func (s store) ask(ctx context.Context, verb string, request any) (a answer, err error) {
	body, err := schema.Marshal(request)
	if err != nil {
		return a, err
	}
	err = kv.Retry(ctx, func(ctx context.Context) (bool, error) {
		sent := time.Now()
		m, err := s.js.Conn().RequestMsgWithContext(ctx, &nats.Msg{Subject: s.api + verb + "." + s.stream(), Data: body})
		if err != nil {
			return false, err
		}
		a = answer{}
		if err := schema.Unmarshal(m.Data, &a); err != nil {
			return false, err
		}
		s.clock.Heard(a.Now, sent, time.Since(sent))
		if a.Error != nil && a.Error.ErrorCode != jetstream.JSErrCodeMessageNotFound {
			return false, a.Error
		}
		return true, nil
	})
	return a, err
}

func (s store) metaSubject(digest string) string {
	return s.metaPrefix() + base64.URLEncoding.EncodeToString([]byte(digest))
}

// find looks an object up.
func (s store) find(ctx context.Context, digest string) (f found, err error) {
	if !isDigest(digest) {
		return f, nil
	}
	a, err := s.ask(ctx, "STREAM.MSG.GET", map[string]string{"last_by_subj": s.metaSubject(digest)})
	if err != nil || a.Message == nil {
		return f, err
	}
	f.revision, f.stored = a.Message.Seq, a.Message.Time
	if !f.read(a.Message.Data, digest) {
		return f, nil // treat it as missing
	}
	a, err = s.ask(ctx, "STREAM.INFO", map[string]string{"subjects_filter": s.chunkPrefix() + f.info.NUID})
	f.whole = err == nil && a.State.Subjects[s.chunkPrefix()+f.info.NUID] == uint64(f.info.Chunks)
	return f, err
}

// read decodes the info of the object, and reports whether it is valid and matches the name.
func (f *found) read(data []byte, digest string) bool {
	if err := schema.Unmarshal(data, &f.info); err != nil {
		return false
	}
	sum, err := base64.URLEncoding.DecodeString(strings.TrimPrefix(f.info.Digest, digestPrefix))
	return err == nil && !f.info.Deleted && f.info.NUID != "" && !strings.ContainsAny(f.info.NUID, ".*> \t\r\n") &&
		f.info.Size <= MaxObject && digestOf(sum) == digest
}

// checkSpace returns nil if size more bytes fit into a percentage of the store.
func (s store) checkSpace(ctx context.Context, size int64, percent int) error {
	if percent >= 100 {
		return nil // the server rejects what does not fit
	}
	a, err := s.ask(ctx, "STREAM.INFO", map[string]string{})
	if most := kv.PercentOf(a.Config.MaxBytes, percent); err == nil && most > 0 && a.State.Bytes+size > most {
		err = fmt.Errorf("%w: it has %d of %d MiB in use, and %d %% are reserved for operators (--reserve); send a shorter text, or wait until older objects expire",
			ErrFull, a.State.Bytes>>20, a.Config.MaxBytes>>20, 100-percent)
	}
	return err
}

// put stores an object within a percentage of the store, unless it exists and is young.
func (s store) put(ctx context.Context, h *held, percent int) error {
	f, err := s.find(ctx, h.digest)
	if err != nil || f.whole && s.clock.Age(f.stored) < s.renewAfter {
		return err
	}
	if err := s.checkSpace(ctx, h.size, percent); err != nil {
		return err
	}
	id := nuid.Next()
	info, err := s.chunks(ctx, id, h)
	if err == nil {
		err = s.name(ctx, info, f)
	}
	if err != nil {
		s.purge(context.WithoutCancel(ctx), id)
		if errors.Is(err, errOther) {
			return nil
		}
		return err
	}
	if f.info.NUID != "" {
		s.purge(ctx, f.info.NUID)
	}
	// Verify that it is complete.
	if f, err = s.find(ctx, h.digest); err == nil && !f.whole {
		err = ErrDamaged
	}
	return err
}

// chunks writes the content, and returns its info.
func (s store) chunks(ctx context.Context, id string, h *held) (jetstream.ObjectInfo, error) {
	digits := strings.TrimPrefix(h.digest, "sha256-")
	sum, err := hex.DecodeString(digits)
	if err != nil {
		return jetstream.ObjectInfo{}, err
	}
	info := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: h.digest, Opts: &jetstream.ObjectMetaOptions{ChunkSize: chunkSize}},
		Bucket:     s.bucket, NUID: id, Size: uint64(h.size), Digest: digestPrefix + base64.URLEncoding.EncodeToString(sum),
	}
	for at := int64(0); at < h.size; at += chunkSize {
		data, err := h.part(at, chunkSize)
		if err != nil {
			return info, err
		}
		info.Chunks++
		// The message id prevents a duplicate if the answer is lost.
		m := &nats.Msg{Subject: s.chunkPrefix() + id, Data: data,
			Header: nats.Header{jetstream.MsgIDHeader: {id + "." + strconv.FormatUint(uint64(info.Chunks), 10)}}}
		if err := s.publish(ctx, m); err != nil {
			return info, err
		}
	}
	return info, nil
}

// errOther means that another client has stored the same object at the same time.
var errOther = errors.New("another client stored it")

// name writes the info of the chunks, unless another client has written one since f.
func (s store) name(ctx context.Context, info jetstream.ObjectInfo, f found) error {
	data, err := schema.Marshal(info)
	if err != nil {
		return err
	}
	for i := range kv.Attempts {
		err = s.publish(ctx, &nats.Msg{Subject: s.metaSubject(info.Name), Data: data, Header: nats.Header{
			jetstream.MsgRollup:                 {jetstream.MsgRollupSubject},
			jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(f.revision, 10)},
		}})
		if !kv.Refused(err) {
			return err
		}
		now, ferr := s.find(ctx, info.Name)
		switch {
		case ferr != nil:
			return ferr
		case now.info.NUID == info.NUID:
			return nil // this write succeeded, and its answer was lost
		case now.revision != f.revision && now.whole:
			return errOther
		}
		f = now
		if err := kv.Again(ctx, i); err != nil {
			return err
		}
	}
	return kv.ErrContended
}

func (s store) publish(ctx context.Context, m *nats.Msg) error {
	return kv.Retry(ctx, func(ctx context.Context) (bool, error) {
		began := time.Now()
		_, err := s.js.PublishMsg(ctx, m)
		s.stored.Note(err, began)
		return err == nil, err
	})
}

// purge deletes chunks without an info. If that fails they lapse.
func (s store) purge(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, kv.TryFor)
	defer cancel()
	st, err := s.js.Stream(ctx, s.stream())
	if err == nil {
		_ = st.Purge(ctx, jetstream.WithPurgeSubject(s.chunkPrefix()+id))
	}
}

// load loads a whole object. Another client may replace it during the load.
func (s store) load(ctx context.Context, digest string) (*held, error) {
	for i := 0; ; i++ {
		f, err := s.find(ctx, digest)
		if err != nil {
			return nil, err
		}
		if !f.whole {
			return nil, fmt.Errorf("%w: %.80q", ErrNotFound, digest)
		}
		h, err := hold(&reading{ctx: ctx, store: s, subject: s.chunkPrefix() + f.info.NUID, left: int(f.info.Chunks)}, f.size())
		if err == nil && h.digest == digest {
			return h, nil
		}
		if err == nil {
			h.close()
			err = fmt.Errorf("%w: it is called %s, and is %s", ErrDamaged, digest, h.digest)
		}
		now, ferr := s.find(ctx, digest)
		if ferr == nil && now.revision == f.revision || i == 2 {
			return nil, s.condemn(ctx, digest, f, err)
		}
	}
}

// condemn deletes the info of a damaged object, so that it can be stored again.
func (s store) condemn(ctx context.Context, digest string, f found, err error) error {
	if errors.Is(err, ErrTooLarge) {
		err = fmt.Errorf("%w: it is longer than it says", ErrDamaged)
	}
	if errors.Is(err, ErrDamaged) {
		_ = s.name(ctx, jetstream.ObjectInfo{ObjectMeta: jetstream.ObjectMeta{Name: digest}, Bucket: s.bucket, NUID: f.info.NUID, Deleted: true}, f)
		s.purge(ctx, f.info.NUID)
	}
	return err
}

// reading reads the chunks of an object in order.
type reading struct {
	ctx     context.Context
	store   store
	subject string
	next    uint64
	left    int
	chunk   []byte
}

func (r *reading) Read(b []byte) (int, error) {
	for len(r.chunk) == 0 {
		if r.left == 0 {
			return 0, io.EOF
		}
		a, err := r.store.ask(r.ctx, "STREAM.MSG.GET", map[string]any{"seq": max(r.next, 1), "next_by_subj": r.subject})
		if err != nil {
			return 0, err
		}
		if a.Message == nil {
			return 0, fmt.Errorf("%w: a part of it is gone", ErrDamaged)
		}
		r.chunk, r.next = a.Message.Data, a.Message.Seq+1
		r.left--
	}
	n := copy(b, r.chunk)
	r.chunk = r.chunk[n:]
	return n, nil
}
