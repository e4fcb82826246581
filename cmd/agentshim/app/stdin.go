package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

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
	type input struct {
		data []byte
		err  error
	}
	done := make(chan input, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(r, schema.MaxEvent+1))
		done <- input{data, err}
	}()
	select {
	case in := <-done:
		if in.err != nil {
			return in.data, unreadable(in.err)
		}
		if len(in.data) > schema.MaxEvent {
			return in.data, errLarge()
		}
		return in.data, nil
	case <-ctx.Done():
		return nil, errSlow
	}
}

var errSlow = errors.New("stdin was still open after half of the timeout; write the event and close stdin")

func errLarge() error {
	return fmt.Errorf("the event on stdin is larger than the limit of %d bytes", schema.MaxEvent)
}

func unreadable(err error) error { return fmt.Errorf("reading stdin: %w", err) }
