package deliver

import (
	"bytes"
	"context"
	"fmt"

	"github.com/hookfabric/hookfabric/bus/aggregator/stores"
	"github.com/hookfabric/hookfabric/schema"
)

// inline returns the items with their texts, as far as those fit into a verdict. Other texts stay
// in the store, and the agent's side fetches them.
func (d *delivery) inline(ctx context.Context, items []*schema.Item) []*schema.Item {
	store := d.opt.Objects
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
			d.opt.Logger.Debug("the agent's side must fetch the text of an item", "sequence", it.Sequence, "error", err)
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
func whole(ctx context.Context, store stores.Objects, o schema.Object) (string, error) {
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
