package roles

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/loadtest/proc"
)

// TapConfig is what to count the messages of.
type TapConfig struct {
	// NATS is the server.
	NATS string `json:"nats"`
	// Subject is what is counted; it may have wildcards.
	Subject string `json:"subject"`
}

// Tapped is how many messages there were since the tap was asked last.
type Tapped struct {
	Messages int `json:"messages"`
	// Subject is the last one's; empty: there was none.
	Subject string `json:"subject,omitzero"`
}

// startTap listens in on a subject. What was published before somebody had an
// answer is counted when the tap is asked after that: the server takes messages of all to
// the tap before it answers the tap's own ping.
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

// flushed waits until the server has done all that it was told before.
func flushed(ctx context.Context, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("asking the server whether that was all: %w", err)
	}
	return nil
}
