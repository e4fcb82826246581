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

// maxInline is the longest text in a request, in bytes. A longer one goes through the object store,
// so that queues stay small.
const maxInline = 256 << 10

// storeTime bounds the storing of what is too large for a request.
const storeTime = 5 * time.Minute

// textOf returns the text of a command's arguments. The argument - is stdin, without the end of
// its last line.
func textOf(args []string, stdin io.Reader) (string, error) {
	if len(args) == 0 {
		return "", program.UsageError("the text is missing; write it in quotes, or - for stdin")
	}
	text := args[0]
	if text == "-" {
		// Limit the read above MaxText and a line end, so that a longer text is noticed.
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

// aText rejects more than one text.
func aText(args []string) error {
	if len(args) > 1 {
		return program.UsageError("there are %d texts; put quotes around the message: %q", len(args), strings.Join(args, " "))
	}
	return nil
}

// fit returns a text for a request: the text itself, or an empty text and an object that holds it.
func (r *remote) fit(ctx context.Context, nc *nats.Conn, text string) (string, *schema.Object, error) {
	encoded, err := schema.Marshal(text)
	if err != nil {
		return "", nil, fmt.Errorf("encoding the text: %w", err)
	}
	const overhead = 64 << 10 // for the other fields of a request
	if len(text) <= maxInline && int64(len(encoded)) <= min(schema.MaxEvent, nc.MaxPayload()-overhead) {
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
	ctx, release := r.untilDenied(ctx)
	defer release()
	ctx, cancel := context.WithTimeoutCause(ctx, storeTime, fmt.Errorf("it took longer than %s", storeTime))
	defer cancel()
	js, err := jetstream.New(nc)
	if err != nil {
		return schema.Object{}, fmt.Errorf("using JetStream: %w", err)
	}
	bucket, err := objects.OpenExisting(ctx, js, objects.Options{})
	if refused := denied(ctx); refused != nil {
		err = refused
	}
	if err != nil {
		return schema.Object{}, err
	}
	putting, stop := r.untilTrouble(ctx, nc)
	defer stop()
	o, err := bucket.Put(putting, content)
	if err != nil && putting.Err() != nil {
		err = context.Cause(putting)
	}
	return o, errors.Join(err, bucket.Close())
}
