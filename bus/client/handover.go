package client

import (
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
	if b.restart != nil || len(b.workspaces) > 0 {
		return true
	}
	for i := range b.injections {
		if b.injections[i].Sequence > 0 {
			return true
		}
	}
	return false
}

// dropDelivered removes the injections whose items were all delivered before.
func (b *bundle) dropDelivered(before func(uint64) bool) (some bool) {
	kept := b.injections[:0:0]
	for _, in := range b.injections {
		if seqs := in.Items(); len(seqs) > 0 && all(seqs, before) {
			some = true
			continue
		}
		kept = append(kept, in)
	}
	if some {
		b.injections = kept
	}
	return some
}

func all(seqs []uint64, ok func(uint64) bool) bool {
	for _, s := range seqs {
		if !ok(s) {
			return false
		}
	}
	return true
}

// hasItems reports whether some item of the queue is left to deliver.
func (b *bundle) hasItems() bool {
	if b.restart != nil {
		return true
	}
	for i := range b.injections {
		if len(b.injections[i].Items()) > 0 {
			return true
		}
	}
	return false
}

// contains reports whether found is true for some text of b.
func (b *bundle) contains(path string, found func(text, path string) bool) bool {
	if b.restart != nil && found(b.restart.Content, path) {
		return true
	}
	for i := range b.injections {
		if found(b.injections[i].Content, path) {
			return true
		}
	}
	return false
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
