package builtin

import "github.com/hookfabric/hookfabric/schema"

// A sourceDelivery is a hook that delivers all items of one source to a busy agent.
type sourceDelivery struct {
	endOptions
	source string
	// lead announces an item whose text follows.
	lead string
	// text renders a run of items.
	text func(r *schema.Receiver, run []*schema.Item) string
}

// newDelivery reads the options of d.
func newDelivery(h schema.Hook, d sourceDelivery) (any, error) {
	var err error
	if d.endOptions, err = options[endOptions](h); err == nil {
		err = d.check(h)
	}
	return d, err
}

// Choose takes all items of the source.
func (d sourceDelivery) Choose(r *schema.Receiver, _ *schema.Peers, due []*schema.Item) []*schema.Item {
	if d.waits(r) {
		return nil
	}
	return chosen(due, func(it *schema.Item) bool { return it.Source == d.source })
}

// Render renders items run by run.
func (d sourceDelivery) Render(r *schema.Receiver, items []*schema.Item) schema.Handout {
	return d.ends(r, rendered(items, func(*schema.Item) string { return d.lead }, func(run []*schema.Item) string { return d.text(r, run) }))
}

// plainTexts returns the texts of items without frames.
func plainTexts(items []*schema.Item) (texts []string) {
	for _, it := range items {
		texts = append(texts, plain(it))
	}
	return texts
}
