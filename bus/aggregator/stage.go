package aggregator

import "github.com/hookfabric/hookfabric/schema"

// A Stage is a hook that runs in the aggregator itself: a [Delivery] or a [Gate].
type Stage any

// A Delivery hands items of the queue over. What it is asked must be done in no
// time: it is on the path of the call.
type Delivery interface {
	// Choose returns, of what is due for the receiver, in order, what the hook
	// hands over now. It may change what p remembers of peers.
	Choose(r *schema.Receiver, p *schema.Peers, due []*schema.Item) []*schema.Item
	// Render makes what the agent reads of the items that it chose.
	Render(r *schema.Receiver, items []*schema.Item) schema.Handout
}

// A Gate refuses tools by the agent's round.
type Gate interface {
	// Passes reports whether a tool is one that is never refused.
	Passes(tool string) bool
	// Refuse is the refusal of a tool.
	Refuse(tool string, r *schema.Round) schema.Result
}

// Stages makes the stage of a hook, or says what is wrong with its options.
type Stages func(h *schema.Hook) (Stage, error)
