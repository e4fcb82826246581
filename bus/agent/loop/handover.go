package loop

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// renewEvery is how often the leases of what the model has not read yet are renewed.
const renewEvery = 10 * time.Second

// waiting is what came from the queue and no model call has had yet: it is not
// acknowledged before one has.
type waiting struct {
	mu  sync.Mutex // guards all
	all []lease
}

// A lease is what one event brought: items of a fabric's queue, by their sequences.
type lease struct {
	event, fabric string
	items         []uint64
	// stands: it is in the conversation. What is not there no model call has, however
	// many there are.
	stands bool
}

// holds reports whether l has all of these items of a fabric.
func (l *lease) holds(fabric string, items []uint64) bool {
	return l.fabric == fabric && !slices.ContainsFunc(items, func(s uint64) bool { return !slices.Contains(l.items, s) })
}

// brought notes what a verdict brings, and takes from it what stands in the
// conversation already: a lease may have lapsed between two queries.
func (w *waiting) brought(c *client.Client, v *schema.Verdict) {
	h, some := c.Brought(v.EventID)
	if !some {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if v.Restart == nil { // a restart takes out what stands there
		v.Injections = slices.DeleteFunc(v.Injections, func(in schema.Injection) bool {
			items := in.Items()
			return len(items) > 0 && !slices.ContainsFunc(items, func(s uint64) bool { return !w.there(h.Fabric, s) })
		})
	}
	w.all = append(w.all, lease{event: v.EventID, fabric: h.Fabric, items: h.Sequences})
}

// there reports whether an item stands in the conversation. The caller holds the lock.
func (w *waiting) there(fabric string, item uint64) bool {
	return slices.ContainsFunc(w.all, func(l lease) bool { return l.stands && l.holds(fabric, []uint64{item}) })
}

// stands notes that what an event brought is in the conversation now. A lease that
// brought the same before, and lapsed, is over.
func (w *waiting) stands(event string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.all, func(l lease) bool { return l.event == event })
	if i < 0 {
		return
	}
	w.all[i].stands = true
	now := w.all[i]
	w.all = slices.DeleteFunc(w.all, func(l lease) bool {
		return l.stands && l.event != event && len(l.items) > 0 && now.holds(l.fabric, l.items)
	})
}

// events are those that wait.
func (w *waiting) events() []string { return w.those(func(lease) bool { return true }) }

// standing are those of which all that they brought is in the conversation.
func (w *waiting) standing() []string { return w.those(func(l lease) bool { return l.stands }) }

func (w *waiting) those(which func(lease) bool) (events []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range w.all {
		if which(l) {
			events = append(events, l.event)
		}
	}
	return events
}

// read says that the model has had what these events brought.
func (w *waiting) read(c *client.Client, events []string) {
	for _, e := range events {
		c.Handed(e)
	}
	w.forget(func(l lease) bool { return slices.Contains(events, l.event) })
}

// forget is for what is not in the conversation any more, or never came there: what
// nobody read comes again.
func (w *waiting) forget(which func(lease) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = slices.DeleteFunc(w.all, which)
}

// renew keeps the leases of what waits until stop is called.
func (w *waiting) renew(ctx context.Context, c *client.Client, agent string) (stop func()) {
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
				// One that fails is tried again before the lease of 30 s lapses.
				_ = c.Hold(ctx, agent, events...)
			}
		}
	})
	return func() { cancel(); done.Wait() }
}
