package workers

import (
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
)

// Take applies an update of the configuration. It activates the active version, and drops
// versions that the update does not keep. It loads a candidate version in the background,
// because loading can take long, and then calls report with the result, unless another
// update arrives first. If the update has no candidate, Take calls report with nil.
func (w *Worker) Take(u state.Update, report func(*schema.Candidate)) {
	update := w.begin(&u)
	if u.Active != nil {
		w.Prepare(*u.Active)
		w.Activate(u.Active.Version, u.Keep)
	} else {
		w.trim()
	}
	switch {
	case u.Candidate != nil:
		w.loads.Go(func() { w.loadCandidate(*u.Candidate, update, report) })
	case u.Bad != nil:
		c := &schema.Candidate{Version: u.Bad.Version, Error: u.Bad.Err.Error()}
		w.report(update, c)
		report(c)
	default:
		report(nil)
	}
}

// loadCandidate loads a version that may become active.
func (w *Worker) loadCandidate(cfg schema.Config, update uint64, report func(*schema.Candidate)) {
	c := &schema.Candidate{Version: cfg.Version, LoadErrors: fittingErrors(w.prepare(cfg, w.holdWanted))}
	if w.report(update, c) {
		report(c)
	}
}

// begin starts an update and returns its number. The versions that it names are kept from
// here on, even if another goroutine drops versions.
func (w *Worker) begin(u *state.Update) (update uint64) {
	w.holding.Lock()
	w.fabric, w.kept = u.Fabric, u.Keep
	w.holding.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.update++
	w.candidate = nil
	return w.update
}

// report makes heartbeats report c, unless another update arrived first.
func (w *Worker) report(update uint64, c *schema.Candidate) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.update == update {
		w.candidate = c
	}
	return w.update == update
}
