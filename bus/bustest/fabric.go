package bustest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/guard"
)

// LeaseFor is the duration of an event's lease.
const LeaseFor = 30 * time.Second

// A Lease is the set of items that an event delivered.
type Lease struct {
	Sequences []uint64
	End       time.Time
}

// A Fabric is a fake for tests of clients: an aggregator without hooks, with a simple queue. An open lease
// does not hold back other items, and all agents share one queue. Lock it before you read or change it.
type Fabric struct {
	sync.Mutex

	// ID is the fabric's id.
	ID string
	// Items lists the items until they are acknowledged.
	Items []schema.Injection
	// Matchers maps sequences to the matchers of items.
	Matchers map[uint64]string
	// Expiries maps sequences to the remaining time of items.
	Expiries map[uint64]time.Duration
	// Leases maps events to leases.
	Leases map[string]Lease
	// Objects maps digests to contents.
	Objects map[string][]byte
	// Workspaces and Restart are in every verdict.
	Workspaces []schema.Workspace
	Restart    *schema.Restart
	// Silent makes acknowledgements count without a confirmation in the verdict.
	Silent bool
	// Deaf makes the fabric ignore acknowledgements in questions.
	Deaf bool
	// Version is the configuration version in verdicts. Guards lists the hooks of the policy,
	// which Signer signs; nil: the fabric has no policy.
	Version uint64
	Guards  []schema.PolicyHook
	// FreezeVersion is the version of the freezes in verdicts. Freezes lists those of the
	// policy. The fake refuses no call because of them.
	FreezeVersion uint64
	Freezes       []schema.Freeze
	Signer        *guard.Signer
	// Answer is called before each control request; true: it answered, or the answer is lost.
	// nil: serve all requests.
	Answer func(verb string, m *nats.Msg) bool

	// OnEvent is the same for questions about events.
	OnEvent func(m *nats.Msg, q bus.EventRequest) bool

	// Asked, Acks, Fetches, Drains and Keeps record the requests.
	Asked   []bus.EventRequest
	Acks    []schema.AckRequest
	AckedAt []time.Time
	Fetches int
	Drains  []schema.DrainRequest
	Keeps   []schema.KeepRequest
	// Policies counts the requests for the policy. Unjudged counts the reports of each call by
	// event id. Recorded lists the calls as they came.
	Policies int
	Unjudged map[string]int
	Recorded []schema.Unjudged
}

// NewFabric returns a fabric that does not listen yet.
func NewFabric(id string) *Fabric {
	return &Fabric{ID: id, Leases: map[string]Lease{}, Objects: map[string][]byte{}, Unjudged: map[string]int{}}
}

// Serve answers requests on a connection.
func (f *Fabric) Serve(ctx context.Context, nc *nats.Conn) error {
	if _, err := nc.QueueSubscribe(bus.EventsWildcard, bus.QueueAggregators, f.event); err != nil {
		return err
	}
	return f.ServeControl(ctx, nc)
}

// ServeControl is [Fabric.Serve] for control requests only.
func (f *Fabric) ServeControl(ctx context.Context, nc *nats.Conn) error {
	if _, err := nc.QueueSubscribe(bus.ControlWildcard, bus.QueueAggregators, f.control); err != nil {
		return err
	}
	return nc.FlushWithContext(ctx)
}

// Put puts items into the queue.
func (f *Fabric) Put(items ...schema.Injection) {
	f.Lock()
	defer f.Unlock()
	f.Items = append(f.Items, items...)
}

// Object stores content outside of verdicts.
func (f *Fabric) Object(content string) *schema.Object {
	sum := sha256.Sum256([]byte(content))
	o := schema.Object{Digest: "sha256-" + hex.EncodeToString(sum[:]), Size: int64(len(content))}
	f.Lock()
	defer f.Unlock()
	f.Objects[o.Digest] = []byte(content)
	return &o
}

func (f *Fabric) event(m *nats.Msg) {
	q, err := bus.ParseEventMsg(m)
	if err != nil && !bytes.HasPrefix(m.Data, []byte(`"`)) { // the body may be the reason why the event could not be sent
		Respond(m, &schema.Verdict{Decision: schema.Deny, Reason: err.Error(), Fabric: f.ID})
		return
	}
	f.Lock()
	taken := f.OnEvent
	f.Unlock()
	if taken != nil && taken(m, q) {
		return
	}
	Respond(m, f.Judge(q))
}

// Judge returns the verdict on a question: continue, with the items that are due.
func (f *Fabric) Judge(q bus.EventRequest) *schema.Verdict {
	f.Lock()
	defer f.Unlock()
	f.Asked = append(f.Asked, q)
	v := &schema.Verdict{Decision: schema.Continue, Fabric: f.ID, ConfigVersion: f.Version, FreezeVersion: f.FreezeVersion, Workspaces: f.Workspaces, Restart: f.Restart}
	if !f.Deaf {
		f.done(q.Acks)
	}
	if !f.Silent && !f.Deaf {
		v.Acked = q.Acks
	}
	v.Injections = f.claim(q.ID)
	return v
}

// claim leases the items that are due to an event.
func (f *Fabric) claim(event string) (due []schema.Injection) {
	now := time.Now()
	var leased []uint64
	for e, l := range f.Leases {
		if e != event && l.End.After(now) {
			leased = append(leased, l.Sequences...)
		} else if e != event {
			delete(f.Leases, e)
		}
	}
	var seqs []uint64
	for _, in := range f.Items {
		if !slices.Contains(leased, in.Sequence) {
			due, seqs = append(due, in), append(seqs, in.Sequence)
		}
	}
	if len(seqs) > 0 {
		f.Leases[event] = Lease{seqs, now.Add(LeaseFor)}
	}
	return due
}

func (f *Fabric) done(events []string) {
	for _, e := range events {
		l := f.Leases[e]
		delete(f.Leases, e)
		f.Items = slices.DeleteFunc(f.Items, func(in schema.Injection) bool { return slices.Contains(l.Sequences, in.Sequence) })
	}
}

func (f *Fabric) control(m *nats.Msg) {
	verb, _, err := bus.ParseControlSubject(m.Subject)
	if err != nil {
		Refuse(m, schema.CodeBadRequest, err.Error())
		return
	}
	f.Lock()
	defer f.Unlock()
	if f.Answer != nil && f.Answer(verb, m) {
		return
	}
	switch verb {
	case schema.VerbAck:
		f.ack(m)
	case schema.VerbFetch:
		f.Fetch(m)
	case schema.VerbDrain:
		f.drain(m)
	case schema.VerbPolicy:
		f.policy(m)
	case schema.VerbRecord:
		f.record(m)
	case schema.VerbKeep:
		f.storePart(m)
	default:
		Refuse(m, schema.CodeBadRequest, "an unknown verb")
	}
}

func (f *Fabric) ack(m *nats.Msg) {
	var r schema.AckRequest
	if !read(m, &r) {
		return
	}
	f.Acks, f.AckedAt = append(f.Acks, r), append(f.AckedAt, time.Now())
	for _, e := range r.Events {
		if l, ok := f.Leases[e]; r.Hold && ok {
			if l.End = time.Now().Add(LeaseFor); r.Release {
				l.End = time.Now()
			}
			f.Leases[e] = l
		}
	}
	if !r.Hold && r.Fabric == f.ID {
		f.done(r.Events)
	}
	Respond(m, struct{}{})
}

// Fetch answers a request for a part of an object. The caller holds the lock.
func (f *Fabric) Fetch(m *nats.Msg) {
	var r schema.FetchRequest
	if !read(m, &r) {
		return
	}
	f.Fetches++
	data, ok := f.Objects[r.Digest]
	if !ok || r.Offset > int64(len(data)) {
		Refuse(m, schema.CodeNotFound, "there is no such object")
		return
	}
	Respond(m, &schema.FetchAnswer{Data: data[r.Offset:min(int64(len(data)), r.Offset+1<<20)], Size: int64(len(data))})
}

func (f *Fabric) drain(m *nats.Msg) {
	var r schema.DrainRequest
	if !read(m, &r) {
		return
	}
	f.Drains = append(f.Drains, r)
	if r.One {
		Respond(m, f.drainOne(r.EventID))
		return
	}
	Respond(m, f.Drain(r.EventID))
}

// drainOne returns the next item, or the item that the event has leased. The caller holds
// the lock.
func (f *Fabric) drainOne(event string) *schema.DrainAnswer {
	all := f.claim(event)
	d := &schema.DrainAnswer{Fabric: f.ID, EventID: event}
	if len(all) == 0 {
		return d
	}
	f.Leases[event] = Lease{[]uint64{all[0].Sequence}, time.Now().Add(LeaseFor)}
	d.ExpiresIn = schema.Duration(f.Expiries[all[0].Sequence])
	d.Content, d.Injections, d.Sequence, d.Matcher, d.Remaining = all[0].Content, all[:1], all[0].Sequence, f.Matchers[all[0].Sequence], len(all)-1
	return d
}

// Drain returns all waiting items as one message. The caller holds the lock.
func (f *Fabric) Drain(event string) *schema.DrainAnswer {
	d := &schema.DrainAnswer{Fabric: f.ID, EventID: event, Injections: f.claim(event), Workspaces: f.Workspaces}
	var texts []string
	if f.Restart != nil {
		texts = append(texts, f.Restart.Content)
	}
	for _, in := range d.Injections {
		if in.Content != "" {
			texts = append(texts, in.Content)
		}
	}
	d.Content = strings.Join(texts, "\n\n")
	return d
}

// Refuse answers a control request with an error.
func Refuse(m *nats.Msg, code, message string) {
	data, err := schema.Marshal(&schema.ControlError{Code: code, Message: message})
	if err != nil {
		data = nil // the headers have the error, too
	}
	_ = m.RespondMsg(&nats.Msg{
		Header: nats.Header{schema.HeaderServiceError: {message}, schema.HeaderServiceErrorCode: {code}}, Data: data,
	})
}

// Respond answers a request.
func Respond(m *nats.Msg, answer any) {
	data, err := schema.Marshal(answer)
	if err != nil {
		Refuse(m, schema.CodeInternal, fmt.Sprintf("encoding the answer: %v", err))
		return
	}
	_ = m.Respond(data)
}

func read(m *nats.Msg, into any) bool {
	err := schema.Unmarshal(m.Data, into)
	if err != nil {
		Refuse(m, schema.CodeBadRequest, err.Error())
	}
	return err == nil
}

// Item returns a queued text.
func Item(sequence uint64, content string) schema.Injection {
	return schema.Injection{Content: content, Strategy: schema.ToolResult, Source: schema.SourceHuman, Sequence: sequence}
}

func (f *Fabric) storePart(m *nats.Msg) {
	var r schema.KeepRequest
	if !read(m, &r) {
		return
	}
	f.Keeps = append(f.Keeps, r)
	if len(r.Data) > 0 {
		sum := sha256.Sum256(r.Data)
		r.Digest, r.Size = "sha256-"+hex.EncodeToString(sum[:]), int64(len(r.Data))
		f.Objects[r.Digest] = r.Data
	}
	_, known := f.Objects[r.Digest]
	Respond(m, &schema.KeepAnswer{Digest: r.Digest, Size: r.Size, Known: known})
}

// Conversation returns the conversation of an event as a hook would read it. The caller holds
// the lock.
func (f *Fabric) Conversation(e *schema.Event) (jsontext.Value, error) {
	refs, err := schema.HistoryParts(e.HistoryRef)
	if err != nil {
		return nil, err
	}
	var lines []byte
	for _, o := range refs {
		part := f.Objects[o.Digest]
		if int64(len(part)) != o.Size {
			return nil, fmt.Errorf("%s has %d bytes, and the event says %d", o.Digest, len(part), o.Size)
		}
		lines = append(lines, part...)
	}
	if err := schema.CheckHistory(lines); err != nil {
		return nil, err
	}
	lines = bytes.ReplaceAll(lines, []byte("\n"), []byte(","))
	end := bytes.TrimPrefix(e.History, []byte("["))
	if len(end) < 2 {
		lines = bytes.TrimSuffix(lines, []byte(","))
	}
	return append(append(jsontext.Value("["), lines...), end...), nil
}

// Signer returns the signer whose seed repeats one byte.
func Signer(of byte) *guard.Signer {
	s, err := guard.NewSigner(bytes.Repeat([]byte{of}, guard.SeedSize))
	if err != nil {
		panic(err) // the seed has its size
	}
	return s
}

// Policy returns the signed policy. The caller holds the lock.
func (f *Fabric) Policy(nonce string) (*schema.PolicyAnswer, error) {
	p := schema.Policy{Fabric: f.ID, ConfigVersion: f.Version, Hooks: f.Guards, FreezeVersion: f.FreezeVersion, Freezes: f.Freezes}
	if len(f.Freezes) > 0 {
		p.Terminal = schema.TerminalTools()
	}
	document, err := schema.Marshal(&p)
	if err != nil {
		return nil, err
	}
	a := f.Signer.Sign(document)
	if nonce != "" {
		f.Signer.Freshen(&a, nonce)
	}
	return &a, nil
}

func (f *Fabric) policy(m *nats.Msg) {
	var r schema.PolicyRequest
	if !read(m, &r) {
		return
	}
	f.Policies++
	if f.Signer == nil {
		Refuse(m, schema.CodeUnavailable, "there is no policy")
		return
	}
	a, err := f.Policy(r.Nonce)
	if err != nil {
		Refuse(m, schema.CodeInternal, err.Error())
		return
	}
	Respond(m, a)
}

func (f *Fabric) record(m *nats.Msg) {
	var r schema.RecordRequest
	if !read(m, &r) {
		return
	}
	for _, u := range r.Calls {
		f.Unjudged[u.EventID]++
		f.Recorded = append(f.Recorded, u)
	}
	Respond(m, &schema.RecordAnswer{Fabric: f.ID})
}
