package otlp

import (
	"encoding/binary"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

// A buffer is an unfinished message of protocol buffers. It is written by hand, with the
// numbers of opentelemetry/proto/trace/v1/trace.proto, because agentshim links this package:
// the generated types add 0.9 ms of processor time to its start, which is paid at each tool
// call. A test reads the messages with the generated types.
type buffer []byte

// The wire types of protocol buffers.
const (
	varint  = 0
	fixed64 = 1
	lengthy = 2
	fixed32 = 5
)

func (b *buffer) tag(field, wire uint64) { *b = binary.AppendUvarint(*b, field<<3|wire) }

func (b *buffer) number(field, n uint64) {
	b.tag(field, varint)
	*b = binary.AppendUvarint(*b, n)
}

func (b *buffer) text(field uint64, s string) {
	if s == "" {
		return // as if it were not there
	}
	b.tag(field, lengthy)
	*b = append(binary.AppendUvarint(*b, uint64(len(s))), s...)
}

func (b *buffer) raw(field uint64, data []byte) {
	b.tag(field, lengthy)
	*b = append(binary.AppendUvarint(*b, uint64(len(data))), data...)
}

// within writes a message in a field. Its length comes first but is known only afterwards.
func (b *buffer) within(field uint64, write func(*buffer)) {
	var inner buffer
	write(&inner)
	b.raw(field, inner)
}

// encode returns an export request with spans.
func encode(resource []trace.Attribute, spans []*trace.Span) []byte {
	var b buffer
	b.within(1, func(b *buffer) { // resource_spans
		b.within(1, func(b *buffer) { b.attributes(1, resource) })
		b.within(2, func(b *buffer) { // scope_spans
			b.within(1, func(b *buffer) {
				b.text(1, "github.com/hookfabric/hookfabric")
				b.text(2, schema.Release)
			})
			for _, s := range spans {
				b.within(2, func(b *buffer) { b.span(s) })
			}
		})
	})
	return b
}

// span writes the fields of a Span.
func (b *buffer) span(s *trace.Span) {
	b.raw(1, s.Context.Trace[:])
	b.raw(2, s.Context.Span[:])
	b.text(3, s.Context.State)
	if s.Parent != [8]byte{} {
		b.raw(4, s.Parent[:])
	}
	b.text(5, trace.Fit(s.Name))
	b.number(6, uint64(s.Kind))
	began := s.Start.UnixNano()
	b.time(7, began)
	b.time(8, began+int64(max(0, s.End.Sub(s.Start)))) // by the monotonic clock, which clock changes do not affect
	b.attributes(9, s.Attributes)
	if s.Error != "" {
		b.within(15, func(b *buffer) {
			b.text(2, s.Error)
			b.number(3, 2) // STATUS_CODE_ERROR
		})
	}
	b.tag(16, fixed32)
	*b = binary.LittleEndian.AppendUint32(*b, uint32(s.Context.Flags))
}

func (b *buffer) time(field uint64, unixNano int64) {
	b.tag(field, fixed64)
	*b = binary.LittleEndian.AppendUint64(*b, uint64(unixNano))
}

func (b *buffer) attributes(field uint64, all []trace.Attribute) {
	for _, a := range all {
		b.within(field, func(b *buffer) {
			b.text(1, a.Key)
			b.within(2, func(b *buffer) { b.value(a.Value) })
		})
	}
}

func (b *buffer) value(v any) {
	switch v := v.(type) {
	case string:
		b.raw(1, []byte(v)) // also if it is empty
	case bool:
		n := uint64(0)
		if v {
			n = 1
		}
		b.number(2, n)
	case int64:
		b.number(3, uint64(v))
	}
}
