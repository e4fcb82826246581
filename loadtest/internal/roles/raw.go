package roles

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/loadtest/internal/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// rawSubject is outside the fabric's own subjects: only the responder subscribes to it.
const rawSubject = "loadtest.raw"

// flushIn limits how long a server may take to process the messages of a connection.
const flushIn = 5 * time.Second

// startRawResponder answers bare requests on the server at at.URL: it decodes
// the event and encodes the verdict of one hook that allows. It answers from
// the subscription's own goroutine, which is the fastest that NATS can be used.
func startRawResponder(_ context.Context, at Address) (*proc.Role, error) {
	nc, err := connect(at.URL, "loadtest "+RawResponder)
	if err != nil {
		return nil, err
	}
	_, err = nc.Subscribe(rawSubject, func(m *nats.Msg) {
		// A request with an error gets no answer: the requester's deadline reports it.
		if body, err := answerRaw(m.Data); err == nil {
			_ = m.Respond(body)
		}
	})
	if err = errors.Join(err, nc.FlushTimeout(flushIn)); err != nil {
		return nil, fmt.Errorf("listening on %s: %w", rawSubject, err)
	}
	return &proc.Role{Do: Settle, Close: closing(nc)}, nil
}

func answerRaw(event []byte) ([]byte, error) {
	var e schema.Event
	if err := schema.Unmarshal(event, &e); err != nil {
		return nil, err
	}
	return schema.Marshal(folded(RawResponder, allowed(1)))
}

// rawAsk sends requests to the responder on a subject, with plain NATS.
func rawAsk(nc *nats.Conn, subject string) ask {
	return func(ctx context.Context, e *schema.Event, _ int) (*schema.Verdict, error) {
		body, err := schema.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("encoding an event: %w", err)
		}
		m, err := nc.RequestWithContext(ctx, subject, body)
		if err != nil {
			return nil, fmt.Errorf("asking on %s: %w", subject, err)
		}
		return verdict(m.Data)
	}
}

// verdict decodes an answer.
func verdict(body []byte) (*schema.Verdict, error) {
	v := new(schema.Verdict)
	if err := schema.Unmarshal(body, v); err != nil {
		return nil, fmt.Errorf("the verdict cannot be read: %w", err)
	}
	return v, nil
}

func connect(url, name string) (*nats.Conn, error) {
	nc, err := nats.Connect(url, nats.Name(name))
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", url, err)
	}
	return nc, nil
}

func closing(nc *nats.Conn) func() error {
	return func() error {
		nc.Close()
		return nil
	}
}

// TapConfig selects the messages to count: those on a subject, which may have wildcards.
type TapConfig struct {
	NATS    string `json:"nats"`
	Subject string `json:"subject"`
}

// startTap subscribes to a subject and answers with the number of its messages so far. If a
// client has received an answer, a later request to the tap counts the messages before that
// answer. The server delivers them to the tap before it answers the tap's ping.
func startTap(_ context.Context, c TapConfig) (*proc.Role, error) {
	nc, err := connect(c.NATS, "loadtest "+Tap)
	if err != nil {
		return nil, err
	}
	heard, err := nc.SubscribeSync(c.Subject)
	if err = errors.Join(err, nc.FlushTimeout(flushIn)); err != nil {
		nc.Close()
		return nil, fmt.Errorf("listening on %s: %w", c.Subject, err)
	}
	count := func(context.Context, []byte) (any, error) {
		if err := nc.FlushTimeout(flushIn); err != nil {
			return nil, fmt.Errorf("asking the server whether that was all: %w", err)
		}
		messages, _, err := heard.Pending()
		return messages, err
	}
	return &proc.Role{Do: count, Close: closing(nc)}, nil
}
