package aggregator

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/bus/state/queue"
	"github.com/hookfabric/hookfabric/schema"
)

// maxInline bounds the bytes of a text that waits in the queue itself, with any characters. The
// object store has longer texts.
const maxInline = queue.MaxContent / 2

// outsource moves the text of an item that is too long for the queue into the
// object store. A structured form that is too long becomes a text.
func (a *Aggregator) outsource(ctx context.Context, it *schema.Item) error {
	store := a.opt.Memory.Objects
	if store == nil {
		return nil
	}
	if (it.Subagent != nil || it.Background != nil) && it.Length() > maxInline {
		text, err := schema.Marshal(structured(it))
		if err != nil {
			return fmt.Errorf("rendering the result as text: %w", err)
		}
		it.Content, it.Subagent, it.Background = string(text), nil, nil
	}
	if len(it.Content) <= maxInline {
		return nil
	}
	percent := 100
	if it.Author != "" {
		percent = a.shared()
	}
	o, err := store.PutWithin(ctx, strings.NewReader(it.Content), percent)
	if err != nil {
		return fmt.Errorf("storing the text: %w", err)
	}
	it.Content, it.Object = "", &o
	return nil
}

// structured returns the structured form of a result.
func structured(it *schema.Item) any {
	if it.Subagent != nil {
		return it.Subagent
	}
	return it.Background
}

// inline returns the items with their texts, as far as those fit into a verdict. Other texts stay
// in the store, and the agent's side fetches them.
func (d *delivery) inline(ctx context.Context, items []*schema.Item) []*schema.Item {
	store := d.agg.opt.Memory.Objects
	room := int64(d.room.content)
	for _, it := range items {
		room -= asJSON(it.Content)
	}
	all := make([]*schema.Item, len(items))
	for i, it := range items {
		all[i] = it
		if it.Object == nil || it.Content != "" || it.Object.Size > room || store == nil {
			continue
		}
		text, err := whole(ctx, store, *it.Object)
		if err != nil {
			d.agg.opt.Logger.Debug("the agent's side must fetch the text of an item", "sequence", it.Sequence, "error", err)
			continue
		}
		size := asJSON(text)
		if size > room {
			continue
		}
		room -= size
		filled := *it // the item itself belongs to the queue
		filled.Content, filled.Object = text, nil
		all[i] = &filled
	}
	return all
}

// whole reads an object.
func whole(ctx context.Context, store Objects, o schema.Object) (string, error) {
	var text bytes.Buffer
	for int64(text.Len()) < o.Size {
		part, _, err := store.Part(ctx, o.Digest, int64(text.Len()))
		if err != nil {
			return "", err
		}
		if len(part) == 0 {
			return "", fmt.Errorf("the object %s ends after %d of %d bytes", o.Digest, text.Len(), o.Size)
		}
		text.Write(part)
	}
	return text.String(), nil
}

// leaves reports whether a rendering still has an injection with the object o, which the agent
// fetches.
func leaves(h *schema.Handout, o *schema.Object) bool {
	for i := range h.Injections {
		if in := &h.Injections[i]; in.Object != nil && in.Object.Digest == o.Digest {
			return true
		}
	}
	return false
}
