package roles

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// rawSubject is outside the fabric's own subjects: only the responder subscribes to it.
const rawSubject = "loadtest.raw"

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
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", rawSubject, err)
	}
	if err := nc.FlushTimeout(5 * time.Second); err != nil {
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
