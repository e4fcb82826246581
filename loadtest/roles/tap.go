package roles

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/loadtest/proc"
)

// TapConfig selects the messages to count.
type TapConfig struct {
	// NATS is the URL of the server.
	NATS string `json:"nats"`
	// Subject is the subject to count, which may have wildcards.
	Subject string `json:"subject"`
}

// Tapped is the number of messages since the last request.
type Tapped struct {
	Messages int `json:"messages"`
	// Subject is that of the last message; empty: no message.
	Subject string `json:"subject,omitzero"`
}

// startTap subscribes to a subject and counts its messages. If a client has received an
// answer, a later request to the tap counts the messages before that answer. The server
// delivers them to the tap before it answers the tap's ping.
func startTap(ctx context.Context, c TapConfig) (*proc.Role, error) {
	nc, err := connect(c.NATS, "loadtest "+Tap)
	if err != nil {
		return nil, err
	}
	heard, err := nc.SubscribeSync(c.Subject)
	if err != nil {
		nc.Close()
		return nil, fmt.Errorf("listening on %s: %w", c.Subject, err)
	}
	if err := flushed(ctx, nc); err != nil {
		nc.Close()
		return nil, err
	}
	count := func(ctx context.Context, _ []byte) (any, error) { return tapped(ctx, nc, heard) }
	return &proc.Role{Do: count, Close: closing(nc)}, nil
}

func tapped(ctx context.Context, nc *nats.Conn, heard *nats.Subscription) (Tapped, error) {
	var all Tapped
	if err := flushed(ctx, nc); err != nil {
		return all, err
	}
	waiting, _, err := heard.Pending()
	if err != nil {
		return all, fmt.Errorf("counting messages: %w", err)
	}
	for range waiting {
		m, err := heard.NextMsgWithContext(ctx)
		if err != nil {
			return all, fmt.Errorf("counting messages: %w", err)
		}
		all.Messages, all.Subject = all.Messages+1, m.Subject
	}
	return all, nil
}

// flushed waits until the server has processed all earlier messages of this connection.
func flushed(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("asking the server whether that was all: %w", err)
	}
	return nil
}
