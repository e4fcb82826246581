package daemon

import (
	"context"
	"os"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/frame"
	"github.com/hookfabric/hookfabric/schema"
)

// A Status is what a daemon is doing.
type Status struct {
	// Release is the program's.
	Release string `json:"release"`
	PID     int    `json:"pid"`
	// Began is when it started.
	Began time.Time `json:"began"`
	// NATS is where it looks for the fabric, without names and passwords.
	NATS string `json:"nats"`
	// Calls are those answered, Active those under way, Shared those that were
	// another delivery of a call that was judged already. SharedByContent are those
	// of them without the runtime's id of the call, which the same call made again
	// within 3 s can be as well.
	Calls           int64 `json:"calls"`
	Active          int64 `json:"active"`
	Shared          int64 `json:"shared"`
	SharedByContent int64 `json:"shared_by_content"`
}

// Status is what the daemon is doing now.
func (s *Server) Status() Status {
	s.flights.mu.Lock()
	shared := s.flights.shared
	s.flights.mu.Unlock()
	return Status{Release: schema.Release, PID: os.Getpid(), Began: s.began.UTC(), NATS: bus.RedactURL(s.opt.NATS),
		Calls: s.served.Load(), Active: s.active.Load(), Shared: shared.byID + shared.byContent, SharedByContent: shared.byContent}
}

func (s *Server) sayStatus(t *talker) {
	body, err := schema.Marshal(s.Status())
	if err != nil {
		t.elsewhere(err.Error())
		return
	}
	t.say(&frame.Message{Kind: frame.Answer, Body: body})
}

// Ask asks the daemon at a socket what it is doing.
func Ask(ctx context.Context, socket string) (st Status, err error) {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(silence)
	}
	l, err := (&Client{Socket: socket}).dial(ctx)
	if err != nil {
		return st, err
	}
	defer l.Close()
	m, err := talk(l, &frame.Message{Kind: frame.Status}, deadline)
	if err != nil {
		return st, err
	}
	return st, schema.Unmarshal(m.Body, &st)
}
