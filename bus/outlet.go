package bus

import (
	"strconv"

	"github.com/nats-io/nats.go"
)

// An Outlet publishes on a connection of [Connect]. The client writes a message
// down under its own lock, wakes a goroutine, and that one brings it to the
// connection, which gathers what is written once more. An Outlet puts it there at
// once, unless something of the client's own has to come before it: the order is
// as if the client published it, and a flush of the client covers it.
//
// On any other connection, and while that one is not made, it is the client's own
// Publish. It is safe for many goroutines.
type Outlet struct {
	nc   *nats.Conn
	last *lastGathered // nil: it is another connection
}

// NewOutlet is the outlet of nc.
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

// Publish publishes m. A nil error does not say that anybody has it.
func (o *Outlet) Publish(m *Message) error {
	if o.last != nil {
		// First the connection, then the status: whichever is connected by then is at
		// least as new, and one that is older is closed and takes nothing.
		g := o.last.conn.Load()
		if g != nil && o.nc.Status() == nats.CONNECTED && idle(o.nc) && m.fits(o.nc) && g.publish(m) == nil {
			return nil
		}
	}
	return o.nc.PublishMsg(m.Msg()) // it says what is wrong, if anything is
}

// idle reports whether nc has handed on all that it was given.
func idle(nc *nats.Conn) bool {
	n, err := nc.Buffered()
	return n == 0 && err == nil
}

// fits reports whether the server of nc takes a message like m.
func (m *Message) fits(nc *nats.Conn) bool {
	return int64(len(m.Header)+len(m.Data)) <= nc.MaxPayload() && (len(m.Header) == 0 || nc.HeadersSupported()) &&
		m.Subject != "" && !breaks(m.Subject) && !breaks(m.Reply)
}

// breaks reports whether a subject may end before its end.
func breaks(subject string) bool {
	for i := range len(subject) {
		if subject[i] <= ' ' {
			return true
		}
	}
	return false
}

// write appends m as it is sent to a server.
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
