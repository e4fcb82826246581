package builtin

import (
	"fmt"

	"github.com/hookfabric/hookfabric/schema"
)

// The values of the option at_end.
const (
	// endRetry delivers the items and keeps the agent going; the default.
	endRetry = "retry"
	// endTell delivers the items and lets the agent's side decide whether it goes on.
	endTell = "tell"
	// endWait leaves the items in the queue for the agent's next turn.
	endWait = "wait"
)

// endOptions are the options that every delivery hook has.
type endOptions struct {
	// AtEnd is what happens to waiting items when the agent is about to end its turn:
	// retry, tell or wait; absent: retry.
	AtEnd string `json:"at_end"`
}

// check returns an error if an option is invalid.
func (o endOptions) check(h schema.Hook) error {
	switch o.AtEnd {
	case "", endRetry, endTell, endWait:
		return nil
	}
	return fmt.Errorf("the option \"at_end\" of %q is %.40q; write %s to keep the agent going, %s to deliver and let the turn end, or %s for its next turn",
		h.Handler, o.AtEnd, endRetry, endTell, endWait)
}

// waits reports whether no item is delivered now.
func (o endOptions) waits(r *schema.Receiver) bool {
	return r != nil && r.Event == schema.BeforeFinalResponse && o.AtEnd == endWait
}

// ends returns the delivery with what happens to the agent's turn.
func (o endOptions) ends(r *schema.Receiver, out schema.Handout) schema.Handout {
	out.Retry = r != nil && r.Event == schema.BeforeFinalResponse && o.AtEnd != endTell
	return out
}
