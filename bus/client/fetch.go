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

// maxTexts limits the texts that are fetched for one verdict.
const maxTexts = schema.MaxText

var errLate = errors.New("there was no time left for it")

// texts fetches the injections whose text is in the object store. A text that cannot be
// fetched is replaced by the reason, and its sequences are returned as lost.
func (c *Client) texts(ctx context.Context, m delivery, b *bundle) (lost []uint64) {
	room := int64(maxTexts)
	for i := range b.injections {
		in := &b.injections[i]
		if in.Object == nil {
			continue
		}
		text, err := c.text(ctx, m, *in.Object, &room)
		if err != nil {
			c.log.Warn("a text could not be fetched; it comes again", "agent", m.agent, "digest", in.Object.Digest, "error", err)
			text = fmt.Sprintf("(A message of %d bytes could not be fetched: %v. It comes again.)", in.Object.Size, err)
			lost = append(lost, in.Items()...)
		}
		if in.Folder != nil && err == nil {
			text = schema.MoveWorkspace(text, in.Folder.Path, in.Folder.Name)
		}
		if in.Content != "" {
			text = in.Content + "\n" + text
		}
		in.Content, in.Object, in.Folder = text, nil, nil
	}
	return lost
}

func (c *Client) text(ctx context.Context, m delivery, o schema.Object, room *int64) (string, error) {
	if o.Size < 0 || o.Size > *room {
		return "", fmt.Errorf("texts of more than %d MiB cannot be delivered at once", maxTexts>>20)
	}
	*room -= o.Size
	var text strings.Builder
	text.Grow(int(o.Size))
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(&text, sum), c.object(ctx, m, o)); err != nil {
		return "", err
	}
	if digest := "sha256-" + hex.EncodeToString(sum.Sum(nil)); digest != o.Digest {
		return "", errors.New("it does not match its digest")
	}
	return strings.ToValidUTF8(text.String(), "\uFFFD"), nil
}

// object returns a reader of an object's content, which is fetched in parts. The caller
// compares the digest.
func (c *Client) object(ctx context.Context, m delivery, o schema.Object) io.Reader {
	return &object{Object: o, ctx: ctx, client: c, delivery: m}
}

type object struct {
	schema.Object

	ctx      context.Context // of the reading call, because io.Reader has none
	client   *Client
	delivery delivery
	at       int64  // the offset of the next part
	part     []byte // the unread rest of the current part
}

func (o *object) Read(b []byte) (int, error) {
	if len(o.part) == 0 {
		if o.at >= o.Size {
			return 0, io.EOF
		}
		if err := o.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, o.part)
	o.part = o.part[n:]
	return n, nil
}

// next fetches a part.
func (o *object) next() error {
	var part schema.FetchAnswer
	err := o.client.controlRetrying(o.ctx, controlTarget{schema.VerbFetch, o.delivery.agent, controlAnother},
		&schema.FetchRequest{Digest: o.Digest, Session: o.delivery.session, Offset: o.at}, &part)
	switch {
	case o.ctx.Err() != nil:
		return context.Cause(o.ctx)
	case err != nil:
		return err
	case part.Size != o.Size:
		return fmt.Errorf("it has %d bytes, and should have %d", part.Size, o.Size)
	case len(part.Data) == 0 || int64(len(part.Data)) > o.Size-o.at:
		return fmt.Errorf("a part of it has %d bytes where %d are left", len(part.Data), o.Size-o.at)
	}
	o.part, o.at = part.Data, o.at+int64(len(part.Data))
	return nil
}
