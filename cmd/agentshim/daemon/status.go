package daemon

import (
	"context"
	"os"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/frame"
	"github.com/hookfabric/hookfabric/schema"
)

// A Status describes a running daemon.
type Status struct {
	// Release is the version of the program.
	Release string `json:"release"`
	PID     int    `json:"pid"`
	// Began is when the daemon started.
	Began time.Time `json:"began"`
	// NATS is the URL of the fabric, without names and passwords.
	NATS string `json:"nats"`
	// Calls counts answered calls, Active the calls in flight, and Shared the further
	// deliveries of calls that were already judged. SharedByContent counts those of Shared
	// without the runtime's id of the call, which may also be the same call made again
	// within 3 s.
	Calls           int64 `json:"calls"`
	Active          int64 `json:"active"`
	Shared          int64 `json:"shared"`
	SharedByContent int64 `json:"shared_by_content"`
}

// Status returns the current status of the daemon.
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

// Ask returns the status of the daemon at a socket.
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
