package audit

import (
	"slices"
	"sync"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// A Recipient is one agent of a process that takes what verdicts bring. It is
// safe for many goroutines.
type Recipient struct {
	agent string
	c     *client.Client
	log   *Journal

	mu sync.Mutex // guards unsure
	// unsure are the events whose acknowledgement is not known to have arrived.
	unsure []string
}

// NewRecipient is the agent that asks through c and whose handovers are logged.
func NewRecipient(agent string, c *client.Client, log *Journal) *Recipient {
	return &Recipient{agent: agent, c: c, log: log}
}

// Take hands over what a verdict brought: to the log, as there is no agent that
// reads. Then, and never before, it says so to the fabric. An error is a log that
// cannot be written.
func (r *Recipient) Take(v *schema.Verdict) error {
	if err := r.log.Hand("", r.agent, v); err != nil {
		return err
	}
	if _, brought := r.c.Brought(v.EventID); !brought {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.c.Handed(v.EventID)
	r.unsure = append(r.unsure, v.EventID)
	return nil
}

// Acknowledged logs the events of which the client has heard meanwhile that
// their acknowledgement arrived.
func (r *Recipient) Acknowledged() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.unsure) == 0 {
		return nil
	}
	noted := r.c.Noted(r.agent).Events
	var sure []string
	r.unsure = slices.DeleteFunc(r.unsure, func(event string) bool {
		if slices.Contains(noted, event) {
			return false
		}
		sure = append(sure, event)
		return true
	})
	if len(sure) == 0 {
		return nil
	}
	return r.log.Write(Entry{Acked: sure})
}
