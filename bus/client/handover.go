package client

import (
	"slices"

	"github.com/hookfabric/hookfabric/schema"
)

// A Handover is a set of items that came from the queue for an agent and are not acknowledged
// yet. A process that ends stores it for the agent's next process, which passes it to
// [Client.Recall].
type Handover struct {
	// Fabric is the id of the fabric of the queue.
	Fabric string
	// Agent is the receiver.
	Agent string
	// Events lists the events to acknowledge. It is empty if some of their items were not
	// delivered and must come again.
	Events []string
	// Sequences lists the delivered items. The client removes them if they come again.
	Sequences []uint64
}

// A bundle is the content of a verdict, or of the answer to a drain, that may be from the
// queue.
type bundle struct {
	injections []schema.Injection
	restart    *schema.Restart
	workspaces []schema.Workspace
}

// queued reports whether some of it is from the queue.
func (b *bundle) queued() bool {
	return b.restart != nil || len(b.workspaces) > 0 ||
		slices.ContainsFunc(b.injections, func(in schema.Injection) bool { return in.Sequence > 0 })
}

// dropDelivered removes the injections whose items were all delivered before.
func (b *bundle) dropDelivered(before func(uint64) bool) (some bool) {
	n := len(b.injections)
	b.injections = slices.DeleteFunc(slices.Clone(b.injections), func(in schema.Injection) bool {
		seqs := in.Items()
		return len(seqs) > 0 && !slices.ContainsFunc(seqs, func(seq uint64) bool { return !before(seq) })
	})
	return len(b.injections) < n
}

// hasItems reports whether some item of the queue is left to deliver.
func (b *bundle) hasItems() bool {
	return b.restart != nil || slices.ContainsFunc(b.injections, func(in schema.Injection) bool { return len(in.Items()) > 0 })
}

// contains reports whether found is true for some text of b.
func (b *bundle) contains(path string, found func(text, path string) bool) bool {
	return b.restart != nil && found(b.restart.Content, path) ||
		slices.ContainsFunc(b.injections, func(in schema.Injection) bool { return found(in.Content, path) })
}

// rewrite changes every text of b.
func (b *bundle) rewrite(change func(string) string) {
	if b.restart != nil {
		restart := *b.restart
		restart.Content = change(restart.Content)
		b.restart = &restart
	}
	for i := range b.injections {
		b.injections[i].Content = change(b.injections[i].Content)
	}
}
