package loop

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// renewEvery is how often the leases of unread items are renewed.
const renewEvery = 10 * time.Second

// unreadItems are items from the queue that no model call has read yet. They are
// acknowledged after one has.
type unreadItems struct {
	mu  sync.Mutex // guards all
	all []lease
}

// A lease is the items of a fabric's queue that one event delivered, by their sequences.
type lease struct {
	event, fabric string
	items         []uint64
	// inConversation means that the items are in the conversation, so that the next model
	// call reads them.
	inConversation bool
}

// holds reports whether l has all of these items of a fabric.
func (l *lease) holds(fabric string, items []uint64) bool {
	return l.fabric == fabric && !slices.ContainsFunc(items, func(s uint64) bool { return !slices.Contains(l.items, s) })
}

// add records the items that a verdict delivers. It removes injections that are already
// in the conversation: a lease may expire between two queries, and the fabric then
// delivers its items again.
func (w *unreadItems) add(c *client.Client, v *schema.Verdict) {
	h, some := c.Brought(v.EventID)
	if !some {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.Restart == nil { // a restart clears the conversation
		v.Injections = slices.DeleteFunc(v.Injections, func(in schema.Injection) bool {
			items := in.Items()
			return len(items) > 0 && !slices.ContainsFunc(items, func(s uint64) bool { return !w.contains(h.Fabric, s) })
		})
	}
	w.all = append(w.all, lease{event: v.EventID, fabric: h.Fabric, items: h.Sequences})
}

// contains reports whether an item is in the conversation. The caller holds the lock.
func (w *unreadItems) contains(fabric string, item uint64) bool {
	return slices.ContainsFunc(w.all, func(l lease) bool { return l.inConversation && l.holds(fabric, []uint64{item}) })
}

// markAdded records that the items of an event are in the conversation now. An expired
// lease of the same items is removed.
func (w *unreadItems) markAdded(event string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.all, func(l lease) bool { return l.event == event })
	if i < 0 {
		return
	}
	w.all[i].inConversation = true
	now := w.all[i]
	w.all = slices.DeleteFunc(w.all, func(l lease) bool {
		return l.inConversation && l.event != event && len(l.items) > 0 && now.holds(l.fabric, l.items)
	})
}

// events returns the events of all leases.
func (w *unreadItems) events() []string { return w.eventsWhere(func(lease) bool { return true }) }

// added returns the events whose items are all in the conversation.
func (w *unreadItems) added() []string {
	return w.eventsWhere(func(l lease) bool { return l.inConversation })
}

func (w *unreadItems) eventsWhere(which func(lease) bool) (events []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.all {
		if which(l) {
			events = append(events, l.event)
		}
	}
	return events
}

// acknowledge records that the model read the items of these events.
func (w *unreadItems) acknowledge(c *client.Client, events []string) {
	for _, e := range events {
		c.Handed(e)
	}
	w.remove(func(l lease) bool { return slices.Contains(events, l.event) })
}

// remove removes leases whose items left the conversation or never reached it. The fabric
// delivers them again.
func (w *unreadItems) remove(which func(lease) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = slices.DeleteFunc(w.all, which)
}

// renew renews all leases until stop is called.
func (w *unreadItems) renew(ctx context.Context, c *client.Client, agent string) (stop func()) {
	if c == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var done sync.WaitGroup
	done.Go(func() {
		t := time.NewTicker(renewEvery)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
			}
			if events := w.events(); len(events) > 0 {
				// After an error, the next attempt comes before the lease of 30 s
				// expires.
				_ = c.Hold(ctx, agent, events...)
			}
		}
	})
	return func() { cancel(); done.Wait() }
}
