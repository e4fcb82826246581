package bus

import (
	"strings"
	"sync"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

const (
	// headerLine begins a block of headers, headerEnd ends each line of it.
	headerLine = "NATS/1.0\r\n"
	headerEnd  = "\r\n"
	// headerKept and bodyKept bound the buffers that are reused for the next message.
	headerKept = 4 << 10
	bodyKept   = 16 << 10
)

// An Envelope makes one message after the other in the same buffers. A message is valid until
// the next one is made; publishing copies it. An Envelope must not be copied, and is for one
// goroutine.
type Envelope struct {
	msg    Message
	header []byte
	body   []byte
}

// JSON encodes v in the fabric's dialect, as the body of the next message.
func (e *Envelope) JSON(v any) (data []byte, err error) {
	data, err = schema.AppendJSON(e.body[:0], v)
	if err == nil {
		e.body = data
	}
	return data, err
}

// begin begins the next message.
func (e *Envelope) begin() { e.header = append(e.header[:0], headerLine...) }

// name begins a header and end ends it; its value is appended in between.
func (e *Envelope) name(name string) { e.header = append(append(e.header, name...), ": "...) }
func (e *Envelope) end()             { e.header = append(e.header, headerEnd...) }

// value appends s, with spaces in place of line breaks.
func (e *Envelope) value(s string) {
	if strings.IndexByte(s, '\n') >= 0 || strings.IndexByte(s, '\r') >= 0 {
		s = strings.NewReplacer("\r", " ", "\n", " ").Replace(s)
	}
	e.header = append(e.header, s...)
}

// set writes a header whose value is known to be safe.
func (e *Envelope) set(name, value string) {
	e.name(name)
	e.value(value)
	e.end()
}

// text writes a header with any text as its value; it leaves out an empty one.
func (e *Envelope) text(name, value string) {
	if value != "" {
		e.set(name, escapeValue(value))
	}
}

// trace writes the trace position of the message; nil: it has no trace.
func (e *Envelope) trace(c *trace.Context) {
	if c == nil {
		return
	}
	e.name(schema.HeaderTraceparent)
	e.header = c.AppendParent(e.header)
	e.end()
	if c.State != "" {
		e.set(schema.HeaderTracestate, c.State)
	}
}

// message returns the message with the headers written so far.
func (e *Envelope) message(subject string, body []byte) *Message {
	e.end()
	e.msg = Message{Subject: subject, Header: e.header, Data: body}
	return &e.msg
}

// Envelopes is a pool of envelopes. The zero value is ready to use.
type Envelopes struct{ spare sync.Pool }

// Take returns an envelope for the caller's sole use.
func (p *Envelopes) Take() *Envelope {
	if e, ok := p.spare.Get().(*Envelope); ok {
		return e
	}
	return new(Envelope)
}

// Put returns an envelope to the pool. It drops the last message and large buffers.
func (p *Envelopes) Put(e *Envelope) {
	e.msg = Message{}
	if cap(e.header) > headerKept {
		e.header = nil
	}
	if cap(e.body) > bodyKept {
		e.body = nil
	}
	p.spare.Put(e)
}
