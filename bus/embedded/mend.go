package embedded

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats-server/v2/server"
)

// Mend starts JetStream anew on what is on disk. The server does not get over a
// disk that was full by itself: a stream that could not write once refuses to
// for good, or all of JetStream is switched off. Where there is no room yet, the
// error says so and nothing is done.
func (s *Server) Mend() error {
	if _, err := checkRoom(s.dir, minRoom); err != nil {
		return err
	}
	if err := s.nats.ShutdownJetStream(); err != nil {
		return fmt.Errorf("stopping JetStream on %s: %w", s.dir, err)
	}
	cfg := s.jetStream // the server writes into what it is given
	if err := s.nats.EnableJetStream(&cfg); err != nil {
		return fmt.Errorf("starting JetStream on %s again: %w", s.dir, err)
	}
	return nil
}

// Broken is what the server knows that keeps it from storing; nil: nothing. It does not
// say so to whoever writes: to them it is as silent as one that has much to do.
func (s *Server) Broken() error {
	for _, e := range s.nats.Healthz(&server.HealthzOptions{Details: true}).Errors {
		if e.Type == server.HealthzErrorJetStream || e.Type == server.HealthzErrorStream {
			return errors.New(e.Error)
		}
	}
	return nil
}
