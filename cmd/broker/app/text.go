package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus/state/objects"
	"github.com/hookfabric/hookfabric/cmd/internal/program"
	"github.com/hookfabric/hookfabric/schema"
)

// maxInline is the longest text that travels in a request. A longer one goes
// through the object store, so that queues stay small.
const maxInline = 256 << 10

// storeTime is how long it may take to store what is too large for a request.
const storeTime = 5 * time.Minute

// textOf is the text that a command's arguments give: one, or - for stdin,
// where the last line's end is not part of it.
func textOf(args []string, stdin io.Reader) (string, error) {
	if len(args) == 0 {
		return "", program.UsageError("the text is missing; write it in quotes, or - for stdin")
	}
	text := args[0]
	if text == "-" {
		// One byte more than a text and its last line's end: nothing is cut unseen.
		data, err := io.ReadAll(io.LimitReader(stdin, schema.MaxText+3))
		if err != nil {
			return "", fmt.Errorf("reading stdin: %w", err)
		}
		text = strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	}
	switch {
	case strings.TrimSpace(text) == "" && args[0] == "-":
		return "", errors.New("stdin has no text; nothing was sent")
	case strings.TrimSpace(text) == "":
		return "", program.UsageError("the text is empty; write the message")
	case len(text) > schema.MaxText:
		return "", fmt.Errorf("the text has more than %d MiB, which is too long for an agent; put it into a file, and send the file's path", schema.MaxText>>20)
	case !utf8.ValidString(text):
		return "", errors.New("the text is not UTF-8; convert it, or put it into a file and send the file's path")
	}
	return text, nil
}

// aText refuses more than one text, and none unless told otherwise.
func aText(args []string) error {
	if len(args) > 1 {
		return program.UsageError("there are %d texts; put quotes around the message: %q", len(args), strings.Join(args, " "))
	}
	return nil
}

// fit returns a text as it goes into a request: as it is, or as an object that
// was stored. Then the text is empty.
func (r *remote) fit(ctx context.Context, nc *nats.Conn, text string) (string, *schema.Object, error) {
	encoded, err := schema.Marshal(text)
	if err != nil {
		return "", nil, fmt.Errorf("encoding the text: %w", err)
	}
	const room = 64 << 10 // for what else is in a request
	if len(text) <= maxInline && int64(len(encoded)) <= min(schema.MaxEvent, nc.MaxPayload()-room) {
		return text, nil, nil
	}
	o, err := r.store(ctx, nc, strings.NewReader(text))
	if err != nil {
		return "", nil, fmt.Errorf("cannot store the text, which is too long for a message: %w", err)
	}
	return "", &o, nil
}

// store puts content into the fabric's object store.
func (r *remote) store(ctx context.Context, nc *nats.Conn, content io.Reader) (schema.Object, error) {
	ctx, heeded := r.heeding(ctx)
	defer heeded()
	ctx, cancel := context.WithTimeoutCause(ctx, storeTime, fmt.Errorf("it took longer than %s", storeTime))
	defer cancel()
	js, err := jetstream.New(nc)
	if err != nil {
		return schema.Object{}, fmt.Errorf("using JetStream: %w", err)
	}
	kept, err := objects.OpenExisting(ctx, js, objects.Options{})
	if refused := denied(ctx); refused != nil {
		err = refused
	}
	if err != nil {
		return schema.Object{}, err
	}
	o, err := kept.Put(ctx, content)
	if refused := denied(ctx); refused != nil {
		err = refused
	}
	return o, errors.Join(err, kept.Close())
}
