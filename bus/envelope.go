package bus

import (
	"strings"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/schema/trace"
)

const (
	// headerLine begins a block of headers, headerEnd ends each line of it.
	headerLine = "NATS/1.0\r\n"
	headerEnd  = "\r\n"
	// headerKept bounds the room that is kept for the next message's headers, and
	// bodyKept that for its body.
	headerKept = 4 << 10
	bodyKept   = 16 << 10
)

// A Message is what is to be published, with its headers as they are written: a
// map of them would be made to be written once.
type Message struct {
	Subject, Reply string
	// Header is a whole block of headers; empty: there are none.
	Header []byte
	Data   []byte
}

// Msg is the message in the client's own form.
func (m *Message) Msg() *nats.Msg {
	msg := &nats.Msg{Subject: m.Subject, Reply: m.Reply, Data: m.Data}
	if len(m.Header) > 0 {
		msg.Header, _ = nats.DecodeHeadersMsg(m.Header) // it is whole
	}
	return msg
}

// An Envelope makes messages one after the other, each in the room of the one
// before. A message is good until the next one is made; what was published is
// copied by then. It must not be copied, and is for one goroutine.
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

// value appends s as it is, but for what would end the line.
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

// text writes a name of somebody else's choice; an empty one is left out.
func (e *Envelope) text(name, value string) {
	if value != "" {
		e.set(name, escapeValue(value))
	}
}

// trace writes the place in a trace that the message comes from; nil: none.
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

// message is what was written, as a message.
func (e *Envelope) message(subject string, body []byte) *Message {
	e.end()
	e.msg = Message{Subject: subject, Header: e.header, Data: body}
	return &e.msg
}

// Envelopes are kept to be used again. The zero Envelopes are empty and good.
type Envelopes struct{ spare sync.Pool }

// Take returns one that nobody else uses.
func (p *Envelopes) Take() *Envelope {
	if e, ok := p.spare.Get().(*Envelope); ok {
		return e
	}
	return new(Envelope)
}

// Put takes one back. It holds on to nothing of its last message but the room
// that the headers and the body took, if that was not much.
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
