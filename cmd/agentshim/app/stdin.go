package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/decide"
	"github.com/hookfabric/hookfabric/schema"
)

// read returns the payload on stdin, up to the limits of size and half of the timeout.
func (h *hook) read() ([]byte, error) {
	deadline := h.began.Add(h.timeout / 2)
	if f, ok := h.stdin.(*os.File); ok {
		if data, err, ok := readFile(f, deadline); ok {
			return data, err
		}
	}
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	return readUntilDone(ctx, h.stdin)
}

// readUntilDone reads at most one event from r, and stops waiting when ctx ends.
func readUntilDone(ctx context.Context, r io.Reader) ([]byte, error) {
	data, err := decide.InTime(ctx, func() ([]byte, error) { return io.ReadAll(io.LimitReader(r, schema.MaxEvent+1)) })
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, errSlow
	case err != nil:
		return data, unreadable(err)
	case len(data) > schema.MaxEvent:
		return data, errLarge()
	}
	return data, nil
}

var errSlow = errors.New("stdin was still open after half of the timeout; write the event and close stdin")

func errLarge() error {
	return fmt.Errorf("the event on stdin is larger than the limit of %d bytes", schema.MaxEvent)
}

func unreadable(err error) error { return fmt.Errorf("reading stdin: %w", err) }
