package bus

import (
	"strconv"
	"strings"
	"time"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/nats-io/nats.go"
)

// An EventRequest is an event as an aggregator receives it: the contents of subject and
// headers, and the raw body.
type EventRequest struct {
	schema.Routing
	// Attempt counts how often the event was sent, from 1.
	Attempt int
	// Left is how long the shim can wait.
	Left time.Duration
	// Acks are the events whose injections the shim delivered.
	Acks []string
	// Body is the event's JSON, not yet decoded.
	Body []byte
	// Reply is the subject for the answer; empty: the sender wants no answer.
	Reply string
}

// EventMsg returns the message for one event on subject, which is the [EventSubject] of r. The
// limits are [MaxAcks] acks and a body of [schema.MaxEvent] bytes; [ParseEventMsg] rejects more.
func EventMsg(subject string, r schema.Routing, attempt int, left time.Duration, acks []string, body []byte) *nats.Msg {
	return new(Envelope).Event(subject, r, attempt, left, acks, body).Msg()
}

// Event makes the [EventMsg] in the envelope.
func (e *Envelope) Event(subject string, r schema.Routing, attempt int, left time.Duration, acks []string, body []byte) *Message {
	e.begin()
	e.set(schema.HeaderID, r.ID)
	e.name(schema.HeaderAttempt)
	e.header = strconv.AppendInt(e.header, int64(attempt), 10)
	e.end()
	e.text(schema.HeaderTool, r.Tool)
	e.text(schema.HeaderSession, r.Session)
	e.left(left)
	if r.Mute {
		e.set(schema.HeaderDeliver, schema.DeliverNone)
	}
	if r.MidTurn {
		e.set(schema.HeaderRestart, schema.RestartNone)
	}
	if len(acks) > 0 {
		e.set(schema.HeaderAck, strings.Join(acks, ","))
	}
	e.trace(r.Trace)
	return e.message(subject, body)
}

// RetryAfter returns a block of headers that says when to send an event again.
func RetryAfter(wait time.Duration) []byte {
	e := Envelope{}
	e.begin()
	e.set(schema.HeaderRetryAfter, wait.String())
	e.end()
	return e.header
}

// left writes the time left.
func (e *Envelope) left(left time.Duration) {
	e.name(schema.HeaderLeft)
	e.header = append(e.header, left.String()...)
	e.end()
}

// ParseEventMsg parses an event message. With an error it also returns all fields that it could
// read, because the answer to a malformed event depends on its type and tool. Without an event
// type the subject itself was malformed.
func ParseEventMsg(m *nats.Msg) (EventRequest, error) {
	agent, event, err := ParseEventSubject(m.Subject)
	in := reader{header: m.Header, err: err}
	q := EventRequest{
		Routing: schema.Routing{
			Event: event, Agent: agent, ID: in.eventID(),
			Tool: in.text(schema.HeaderTool), Session: in.text(schema.HeaderSession), Mute: in.none(schema.HeaderDeliver), MidTurn: in.none(schema.HeaderRestart),
			Trace: in.trace(),
		},
		Attempt: in.attempt(), Left: in.left(), Acks: in.acks(),
		Body: m.Data, Reply: m.Reply,
	}
	in.body(m.Data)
	return q, in.err
}

func (r *reader) body(data []byte) {
	if len(data) > schema.MaxEvent {
		r.fault("the event's body has %d bytes; send at most %d", len(data), schema.MaxEvent)
	}
	if len(data) == 0 || data[0] != '"' {
		return
	}
	var why string
	if err := schema.Unmarshal(data, &why); err == nil {
		r.fault("the shim could not read the event: %s", why[:min(len(why), maxUnread)])
	}
}

// UnreadBody returns the body for an event that cannot be sent: the reason, as a JSON string.
func UnreadBody(why error) []byte {
	text := why.Error()
	data, err := schema.Marshal(strings.ToValidUTF8(text[:min(len(text), maxUnread)], ""))
	if err != nil {
		return nil
	}
	return data
}

// maxUnread bounds that reason, in bytes.
const maxUnread = 512

// none reports whether the header, which has one legal value, is present.
func (r *reader) none(name string) bool {
	v := r.raw(name, schema.MaxHeader)
	if v != "" && v != schema.DeliverNone {
		r.fault("the header %s is %.64q; send %s or leave it out", name, v, schema.DeliverNone)
	}
	return v != ""
}

// attempt returns the attempt's number; without the header it is the first.
func (r *reader) attempt() int {
	v := r.raw(schema.HeaderAttempt, schema.MaxHeader)
	if v == "" {
		return 1
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > MaxAttempt {
		r.fault("the header %s is %.64q; send a number from 1 to %d", schema.HeaderAttempt, v, MaxAttempt)
		return 1
	}
	return n
}

// acks returns the acknowledged events.
func (r *reader) acks() []string {
	v := r.raw(schema.HeaderAck, schema.MaxHeader)
	if v == "" {
		return nil
	}
	if n := strings.Count(v, ",") + 1; n > MaxAcks {
		r.fault("the header %s lists %d events; at most %d are allowed", schema.HeaderAck, n, MaxAcks)
		return nil
	}
	acks := strings.Split(v, ",")
	for i, s := range acks {
		id, ok := CanonicalUUID(strings.TrimSpace(s))
		if !ok {
			r.fault("the header %s lists %.64q, which is not a UUID; list event ids, separated by commas", schema.HeaderAck, s)
			return nil
		}
		acks[i] = id
	}
	return acks
}
