package bus

import (
	"strconv"
	"sync"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
)

// maxHeaders is the most headers that a message of ours has.
const maxHeaders = 10

// An Envelope makes messages one after the other, each in the room of the one
// before: most have the same headers, and their values alone are written anew.
// A message is good until the next one is made; what was published is copied by
// then. It must not be copied, and is for one goroutine.
type Envelope struct {
	msg    nats.Msg
	header nats.Header
	// values are what the header's slices point to, names whose they are; so many
	// of them are written.
	values  [maxHeaders]string
	names   []string
	written int
	// config is the text that was made last of a config version.
	config struct {
		version uint64
		fabric  string
		text    string
	}
}

// begin begins the next message.
func (e *Envelope) begin() {
	if e.header == nil {
		e.header, e.names = make(nats.Header, maxHeaders), make([]string, 0, maxHeaders)
	}
	e.written = 0
}

// set writes a value that is known to be safe.
func (e *Envelope) set(name, value string) {
	i := e.written
	if i < len(e.names) && e.names[i] != name {
		e.cut(i)
	}
	if i == len(e.names) {
		e.names = append(e.names, name)
		e.header[name] = e.values[i : i+1 : i+1]
	}
	e.values[i] = value
	e.written++
}

// cut takes out the headers from the i-th on.
func (e *Envelope) cut(i int) {
	for _, name := range e.names[i:] {
		delete(e.header, name)
	}
	e.names = e.names[:i]
}

// text writes a name of somebody else's choice; an empty one is left out.
func (e *Envelope) text(name, value string) {
	if value != "" {
		e.set(name, escapeValue(value))
	}
}

// message is what was written, as a message.
func (e *Envelope) message(subject string, body []byte) *nats.Msg {
	e.cut(e.written)
	e.msg = nats.Msg{Subject: subject, Header: e.header, Data: body}
	return &e.msg
}

// configOf is the config version of b, and behind a blank whose it is.
func (e *Envelope) configOf(b *schema.Batch) string {
	c := &e.config
	if c.text == "" || c.version != b.Version || c.fabric != b.Fabric {
		c.version, c.fabric, c.text = b.Version, b.Fabric, strconv.FormatUint(b.Version, 10)
		if b.Fabric != "" {
			c.text += " " + b.Fabric
		}
	}
	return c.text
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

// Put takes one back. It holds on to none of what its last message carried.
func (p *Envelopes) Put(e *Envelope) {
	e.msg = nats.Msg{}
	e.values = [maxHeaders]string{}
	p.spare.Put(e)
}
