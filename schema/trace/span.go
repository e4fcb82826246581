package trace

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"time"
)

// A Kind says which side of a call a span is. The numbers are OpenTelemetry's.
type Kind int

// The kinds that the fabric uses.
const (
	Internal Kind = 1
	Server   Kind = 2
	Client   Kind = 3
)

// The names of attributes. No attribute holds text of an agent, a tool or a hook, because
// readers of traces may not be allowed to read it.
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
	// Hooks is the number of hooks asked, or in the verdict.
	Hooks = "hookfabric.hooks"
	// Injections is the number of waiting items that the event delivers.
	Injections = "hookfabric.injections"
	// Denied marks refused calls. FailedOpen marks calls that passed although hooks had failed.
	// Unjudged marks calls that no broker judged.
	Denied     = "hookfabric.denied"
	FailedOpen = "hookfabric.failed_open"
	Unjudged   = "hookfabric.unjudged"
)

// maxValue limits an attribute's value, because agents choose some of them.
const maxValue = 256

// An Attribute is one fact about a span.
type Attribute struct {
	Key string
	// Value is a string, an int64 or a bool.
	Value any
}

// A Sink receives spans that have ended, and owns them. It must not block.
type Sink interface {
	Take(s *Span)
}

// A Sampler reports whether to record the spans of a trace. parent is nil at the start of a
// trace.
type Sampler func(parent *Context, id [16]byte) bool

// A Tracer starts spans. A nil Tracer starts nil spans.
type Tracer struct {
	// Sink receives the spans.
	Sink Sink
	// Sample selects the traces to record.
	Sample Sampler
}

// A Span is one part of the fabric's work for an event. One goroutine uses it; several may
// start children of it. Methods of a nil Span do nothing.
type Span struct {
	Context    Context
	Parent     [8]byte // zero: the start of the trace
	Name       string
	Kind       Kind
	Start, End time.Time
	Attributes []Attribute
	// Error says why the work failed; empty: it succeeded.
	Error string

	sink Sink // nil: the trace's spans are not recorded
}

// Start starts a span below parent, or a trace if parent is nil. The span's name is what and
// to, separated by a space.
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

// Child starts a span below s.
func (s *Span) Child(k Kind, what, to string) *Span {
	if s == nil || s.sink == nil {
		return s // s is not recorded either
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

// id returns a random number that is not zero.
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

// Or returns the position below s, or without tracing here, parent. Thus a trace continues
// through programs that do not trace.
func (s *Span) Or(parent *Context) *Context {
	if s == nil {
		return parent
	}
	return &s.Context
}

// Kept reports whether a sink will receive s. Check it before expensive attributes.
func (s *Span) Kept() bool { return s != nil && s.sink != nil }

// Since moves the start of s to an earlier time, if the work began before the span.
func (s *Span) Since(t time.Time) {
	if s.Kept() {
		s.Start = t
	}
}

// Text sets a text attribute. It ignores an empty value.
func (s *Span) Text(key, value string) {
	if !s.Kept() || value == "" {
		return
	}
	s.Attributes = append(s.Attributes, Attribute{key, Fit(value)})
}

// Number sets a number attribute.
func (s *Span) Number(key string, n int64) {
	if s.Kept() {
		s.Attributes = append(s.Attributes, Attribute{key, n})
	}
}

// Mark sets a boolean attribute to true. It ignores false.
func (s *Span) Mark(key string, yes bool) {
	if yes && s.Kept() {
		s.Attributes = append(s.Attributes, Attribute{key, true})
	}
}

// Fail sets the error of s.
func (s *Span) Fail(why string) {
	if s.Kept() {
		s.Error = Fit(why)
	}
}

// Done ends s and passes it to the sink. Only the first call counts.
func (s *Span) Done() {
	if !s.Kept() || !s.End.IsZero() {
		return
	}
	s.End = time.Now()
	s.sink.Take(s)
}

// Fit shortens a text to the limit of spans, at a character boundary.
func Fit(s string) string {
	if len(s) > maxValue {
		s = s[:maxValue]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
