package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// maxTexts bounds the texts that are fetched for one verdict.
const maxTexts = 64 << 20

var errLate = errors.New("there was no time left for it")

// texts fetches the injections whose text lies outside the verdict. What fails
// says so in its place, and is lost to this verdict; nil: nothing is.
func (c *Client) texts(ctx context.Context, agent string, b *bundle) (lost map[int]bool) {
	room := int64(maxTexts)
	for i := range b.injections {
		in := &b.injections[i]
		if in.Object == nil {
			continue
		}
		text, err := c.text(ctx, agent, *in.Object, &room)
		if err != nil {
			c.log.Warn("a text could not be fetched; it comes again", "agent", agent, "digest", in.Object.Digest, "error", err)
			text = fmt.Sprintf("(A message of %d bytes could not be fetched: %v. It comes again.)", in.Object.Size, err)
			if lost == nil {
				lost = map[int]bool{}
			}
			lost[i] = true
		}
		if in.Content != "" {
			text = in.Content + "\n" + text
		}
		in.Content, in.Object = text, nil
	}
	return lost
}

func (c *Client) text(ctx context.Context, agent string, o schema.Object, room *int64) (string, error) {
	if o.Size > *room {
		return "", fmt.Errorf("texts of more than %d MiB can not be handed over at once", maxTexts>>20)
	}
	*room -= o.Size
	var text strings.Builder
	if err := c.fetch(ctx, agent, o, &text); err != nil {
		return "", err
	}
	return strings.ToValidUTF8(text.String(), "\uFFFD"), nil
}

// fetch writes an object to w. Until it returns nil, what was written may be
// anything.
func (c *Client) fetch(ctx context.Context, agent string, o schema.Object, w io.Writer) error {
	sum := sha256.New()
	for at := int64(0); at < o.Size; {
		var part schema.FetchAnswer
		err := c.patiently(ctx, schema.VerbFetch, agent, &schema.FetchRequest{Digest: o.Digest, Offset: at}, &part)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return err
		case part.Size != o.Size:
			return fmt.Errorf("it has %d bytes, and should have %d", part.Size, o.Size)
		case len(part.Data) == 0 || int64(len(part.Data)) > o.Size-at:
			return fmt.Errorf("a part of it has %d bytes where %d are left", len(part.Data), o.Size-at)
		}
		sum.Write(part.Data)
		if _, err := w.Write(part.Data); err != nil {
			return err
		}
		at += int64(len(part.Data))
	}
	if digest := "sha256-" + hex.EncodeToString(sum.Sum(nil)); digest != o.Digest {
		return errors.New("it is not what its digest says")
	}
	return nil
}
