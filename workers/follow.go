package workers

import (
	"github.com/hookfabric/hookfabric/bus/state"
	"github.com/hookfabric/hookfabric/schema"
)

// Take applies an update of the configuration. It activates the active version, and drops
// versions that the update does not keep. It loads a candidate version in the background,
// because loading can take long, and then calls said with the result, unless another update
// arrives first. If the update has no candidate, Take calls said with nil.
func (w *Worker) Take(u state.Update, said func(*schema.Candidate)) {
	turn := w.begin(&u)
	if u.Active != nil {
		w.Prepare(*u.Active)
		w.Activate(u.Active.Version, u.Keep)
	} else {
		w.trim()
	}
	switch {
	case u.Candidate != nil:
		w.loads.Go(func() { w.consider(*u.Candidate, turn, said) })
	case u.Bad != nil:
		c := &schema.Candidate{Version: u.Bad.Version, Error: u.Bad.Err.Error()}
		w.say(turn, c)
		said(c)
	default:
		said(nil)
	}
}

// consider loads a version that may become active.
func (w *Worker) consider(cfg schema.Config, turn uint64, said func(*schema.Candidate)) {
	c := &schema.Candidate{Version: cfg.Version, LoadErrors: fittingErrors(w.prepare(cfg, w.holdWanted))}
	if w.say(turn, c) {
		said(c)
	}
}

// begin begins to take an update, about which nothing is said yet. What it names
// is held on to from here on, whoever lets go of something meanwhile.
func (w *Worker) begin(u *state.Update) (turn uint64) {
	w.holding.Lock()
	w.fabric, w.kept = u.Fabric, u.Keep
	w.holding.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn++
	w.candidate = nil
	return w.turn
}

// say lets the beats tell c, unless another update came first.
func (w *Worker) say(turn uint64, c *schema.Candidate) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turn == turn {
		w.candidate = c
	}
	return w.turn == turn
}
