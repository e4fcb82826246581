package trace

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"time"
)

// A Kind says which side of a call a span is, by the numbers of OpenTelemetry.
type Kind int

// The kinds that the fabric has.
const (
	Internal Kind = 1
	Server   Kind = 2
	Client   Kind = 3
)

// The names of attributes. None holds what an agent, a tool or a hook said: spans go
// to people who need not be allowed to read that.
const (
	Agent    = "hookfabric.agent"
	Event    = "hookfabric.event"
	EventID  = "hookfabric.event_id"
	Tool     = "hookfabric.tool"
	Runtime  = "hookfabric.runtime"
	Attempt  = "hookfabric.attempt"
	Decision = "hookfabric.decision"
	Version  = "hookfabric.config_version"
	Pool     = "hookfabric.pool"
	Worker   = "hookfabric.worker"
	Batch    = "hookfabric.batch"
	Hook     = "hookfabric.hook"
	Handler  = "hookfabric.hook_type"
	Outcome  = "hookfabric.outcome"
	// Hooks is how many hooks are asked, or stand in the verdict.
	Hooks = "hookfabric.hooks"
	// Injections is how many of what waited were taken along.
	Injections = "hookfabric.injections"
	// Denied marks calls that were refused, FailedOpen those that passed although hooks
	// had failed, and Unjudged those that nobody of the fabric judged.
	Denied     = "hookfabric.denied"
	FailedOpen = "hookfabric.failed_open"
	Unjudged   = "hookfabric.unjudged"
)

// maxValue bounds an attribute's value. Names come from agents.
const maxValue = 256

// An Attribute is one fact about a span.
type Attribute struct {
	Key string
	// Value is a string, an int64 or a bool.
	Value any
}

// A Sink takes spans that have ended. It must not block; the spans are its own.
type Sink interface {
	Take(s *Span)
}

// A Sampler says whether the spans of a trace are kept, by its parent, which is nil
// where the trace begins, and by its id.
type Sampler func(parent *Context, id [16]byte) bool

// A Tracer begins spans. Nil begins none.
type Tracer struct {
	// Sink takes them.
	Sink Sink
	// Sample says which.
	Sample Sampler
}

// A Span is what one part of the fabric did for an event. It is for one goroutine;
// children may be begun by many. A nil one tells nothing.
type Span struct {
	Context    Context
	Parent     [8]byte // zero: the trace begins here
	Name       string
	Kind       Kind
	Start, End time.Time
	Attributes []Attribute
	// Error is why it failed; empty: it did not.
	Error string

	sink Sink // nil: the trace's spans are not kept
}

// Start begins a span below parent, or a trace where that is nil. Its name is what it
// does, and to what, with a blank in between.
func (t *Tracer) Start(parent *Context, k Kind, what, to string) *Span {
	if t == nil {
		return nil
	}
	s := &Span{Start: time.Now(), Kind: k, Name: name(what, to)}
	if parent != nil {
		s.Context, s.Parent = *parent, parent.Span
	} else {
		binary.NativeEndian.PutUint64(s.Context.Trace[:], id())
		binary.NativeEndian.PutUint64(s.Context.Trace[8:], id())
	}
	s.Context.Span = spanID()
	s.Context.Flags = 0
	if t.Sample(parent, s.Context.Trace) {
		s.Context.Flags, s.sink = sampled, t.Sink
	}
	return s
}

// Child begins a span below s.
func (s *Span) Child(k Kind, what, to string) *Span {
	if s == nil || s.sink == nil {
		return s // which is not kept either
	}
	c := &Span{Start: time.Now(), Kind: k, Name: name(what, to), Context: s.Context, Parent: s.Context.Span, sink: s.sink}
	c.Context.Span = spanID()
	return c
}

func name(what, to string) string {
	if to == "" {
		return what
	}
	return what + " " + to
}

// id is a random number that is not zero.
func id() uint64 {
	for {
		if n := rand.Uint64(); n != 0 {
			return n
		}
	}
}

func spanID() (b [8]byte) {
	binary.NativeEndian.PutUint64(b[:], id())
	return b
}

// Or is the place below s, or where nobody traces here, that of whoever asked: a trace
// goes on through those who have no part in it.
func (s *Span) Or(parent *Context) *Context {
	if s == nil {
		return parent
	}
	return &s.Context
}

// Kept reports whether somebody will read what is told of s, for facts that are
// dear to find out.
func (s *Span) Kept() bool { return s != nil && s.sink != nil }

// Since moves the beginning of s: what it is about began before it was known.
func (s *Span) Since(t time.Time) {
	if s.Kept() {
		s.Start = t
	}
}

// Text tells a fact; an empty one is none.
func (s *Span) Text(key, value string) {
	if !s.Kept() || value == "" {
		return
	}
	s.Attributes = append(s.Attributes, Attribute{key, Fit(value)})
}

// Number tells a number.
func (s *Span) Number(key string, n int64) {
	if s.Kept() {
		s.Attributes = append(s.Attributes, Attribute{key, n})
	}
}

// Mark tells that something is so; that it is not, nobody needs to read.
func (s *Span) Mark(key string, yes bool) {
	if yes && s.Kept() {
		s.Attributes = append(s.Attributes, Attribute{key, true})
	}
}

// Fail says why what s is about failed.
func (s *Span) Fail(why string) {
	if s.Kept() {
		s.Error = Fit(why)
	}
}

// Done ends s and hands it on. Only the first time counts.
func (s *Span) Done() {
	if !s.Kept() || !s.End.IsZero() {
		return
	}
	s.End = time.Now()
	s.sink.Take(s)
}

// Fit is a text as spans may carry it: bounded, and of whole characters.
func Fit(s string) string {
	if len(s) > maxValue {
		s = s[:maxValue]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
