package audit

import (
	"slices"
	"sync"

	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/schema"
)

// A Recipient is one agent that receives verdicts. It is safe for concurrent use.
type Recipient struct {
	agent string
	c     *client.Client
	log   *Journal

	mu sync.Mutex // guards unsure
	// unsure are the events whose acknowledgement is not confirmed.
	unsure []string
}

// NewRecipient returns the recipient for an agent that asks through c. It logs handovers to
// log.
func NewRecipient(agent string, c *client.Client, log *Journal) *Recipient {
	return &Recipient{agent: agent, c: c, log: log}
}

// Take logs the items of a verdict, and only then acknowledges them to the fabric. It
// returns an error if it cannot write the log.
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

// Acknowledged logs the events whose acknowledgement has arrived since the last call.
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
