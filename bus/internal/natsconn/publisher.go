package natsconn

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
)

// A Message is a message to publish, with its headers in wire form, which saves a map.
type Message struct {
	Subject, Reply string
	// Header is a complete block of headers; empty: no headers.
	Header []byte
	Data   []byte
}

// Msg returns the message in the form of nats.go.
func (m *Message) Msg() *nats.Msg {
	msg := &nats.Msg{Subject: m.Subject, Reply: m.Reply, Data: m.Data}
	if len(m.Header) > 0 {
		msg.Header, _ = nats.DecodeHeadersMsg(m.Header) // always well-formed
	}
	return msg
}

// append appends m in the NATS protocol.
func (m *Message) append(b []byte) []byte {
	operation, size := "PUB ", len(m.Data)
	if len(m.Header) > 0 {
		operation, size = "HPUB ", len(m.Header)+len(m.Data)
	}
	b = append(append(append(b, operation...), m.Subject...), ' ')
	if m.Reply != "" {
		b = append(append(b, m.Reply...), ' ')
	}
	if len(m.Header) > 0 {
		b = append(strconv.AppendInt(b, int64(len(m.Header)), 10), ' ')
	}
	b = append(strconv.AppendInt(b, int64(size), 10), "\r\n"...)
	b = append(append(b, m.Header...), m.Data...)
	return append(b, "\r\n"...)
}

// A Publisher publishes faster than the client, which buffers a message under its lock and
// wakes a goroutine that writes it. A Publisher writes to the connection at once, unless the
// client has unwritten data: order and the effect of a flush stay those of the client's own
// Publish. Inside TLS and WebSocket, during a reconnect, and on a connection without a
// [Connector] it uses that Publish. It is safe for concurrent use.
type Publisher struct {
	nc        *nats.Conn
	connector *Connector // nil: only the client can publish
}

// NewPublisher returns the Publisher of nc.
func NewPublisher(nc *nats.Conn) *Publisher {
	p := &Publisher{nc: nc}
	if !slices.ContainsFunc(nc.Servers(), func(url string) bool { return strings.HasPrefix(url, "ws") }) {
		p.connector = connectorOf(nc)
	}
	return p
}

// Publish publishes m. As with the client's Publish, nil does not mean that m was received.
func (p *Publisher) Publish(m *Message) error {
	if p.connector != nil {
		// Load the connection before the state: the connection is then not newer than the state
		// shows, and writing to a replaced one fails.
		if c := p.connector.last.Load(); c != nil && p.isReady() && p.fits(m) && c.publish(m) == nil {
			return nil
		}
	}
	return p.nc.PublishMsg(m.Msg()) // returns the error, if there is one
}

// isReady reports whether the client is connected without TLS and has written all of its data.
func (p *Publisher) isReady() bool {
	if p.nc.Status() != nats.CONNECTED {
		return false
	}
	if _, err := p.nc.TLSConnectionState(); !errors.Is(err, nats.ErrConnectionNotTLS) {
		return false
	}
	n, err := p.nc.Buffered()
	return n == 0 && err == nil
}

// fits reports whether the server accepts m.
func (p *Publisher) fits(m *Message) bool {
	const separators = " \t\r\n"
	return int64(len(m.Header)+len(m.Data)) <= p.nc.MaxPayload() && (len(m.Header) == 0 || p.nc.HeadersSupported()) &&
		m.Subject != "" && !strings.ContainsAny(m.Subject, separators) && !strings.ContainsAny(m.Reply, separators)
}
