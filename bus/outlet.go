package bus

import (
	"strconv"

	"github.com/nats-io/nats.go"
)

// An Outlet publishes on a connection of [Connect] faster than the client, which buffers a
// message under its lock and wakes a goroutine that writes it to the connection. An Outlet
// writes to the connection at once, unless the client has unwritten data: order and the effect
// of a flush stay those of the client's own Publish.
//
// On another connection, and during a reconnect, it uses the client's Publish. It is safe for
// concurrent use.
type Outlet struct {
	nc   *nats.Conn
	last *lastGathered // nil: it is another connection
}

// NewOutlet returns the outlet of nc.
func NewOutlet(nc *nats.Conn) *Outlet {
	o := &Outlet{nc: nc}
	if d, ok := nc.Opts.CustomDialer.(*gatheringDialer); ok {
		o.last = &d.last
	}
	if s, ok := nc.Opts.InProcessServer.(*gatheringServer); ok {
		o.last = &s.last
	}
	return o
}

// Publish publishes m. As with the client's Publish, nil does not mean that m was received.
func (o *Outlet) Publish(m *Message) error {
	if o.last != nil {
		// Load the connection before the status: the connection is then not newer than the status
		// shows, and writing to a replaced one fails.
		g := o.last.conn.Load()
		if g != nil && o.nc.Status() == nats.CONNECTED && idle(o.nc) && m.fits(o.nc) && g.publish(m) == nil {
			return nil
		}
	}
	return o.nc.PublishMsg(m.Msg()) // returns the error, if there is one
}

// idle reports whether nc has written all of its data to the connection.
func idle(nc *nats.Conn) bool {
	n, err := nc.Buffered()
	return n == 0 && err == nil
}

// fits reports whether the server of nc accepts a message of this size.
func (m *Message) fits(nc *nats.Conn) bool {
	return int64(len(m.Header)+len(m.Data)) <= nc.MaxPayload() && (len(m.Header) == 0 || nc.HeadersSupported()) &&
		m.Subject != "" && !breaks(m.Subject) && !breaks(m.Reply)
}

// breaks reports whether a subject contains a byte that would end it early.
func breaks(subject string) bool {
	for i := range len(subject) {
		if subject[i] <= ' ' {
			return true
		}
	}
	return false
}

// write appends m in the NATS protocol.
func (m *Message) write(b []byte) []byte {
	begin, size := "PUB ", len(m.Data)
	if len(m.Header) > 0 {
		begin, size = "HPUB ", len(m.Header)+len(m.Data)
	}
	b = append(append(append(b, begin...), m.Subject...), ' ')
	if m.Reply != "" {
		b = append(append(b, m.Reply...), ' ')
	}
	if len(m.Header) > 0 {
		b = append(strconv.AppendInt(b, int64(len(m.Header)), 10), ' ')
	}
	b = append(strconv.AppendInt(b, int64(size), 10), headerEnd...)
	b = append(append(b, m.Header...), m.Data...)
	return append(b, headerEnd...)
}
