package queue

import "github.com/hookfabric/hookfabric/schema"

// complete replaces nil functions.
func (w *Watch) complete() {
	if w.Duplicate == nil {
		w.Duplicate = func(string) {}
	}
	if w.Delivered == nil {
		w.Delivered = func(string, *schema.Item) {}
	}
	if w.Redelivered == nil {
		w.Redelivered = func(string, *schema.Item) {}
	}
	if w.LeaseExpired == nil {
		w.LeaseExpired = func(string, string) {}
	}
	if w.Expired == nil {
		w.Expired = func(*schema.Item) {}
	}
	if w.Conflict == nil {
		w.Conflict = func() {}
	}
}
