package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/schema"
)

// Mend starts JetStream anew on what is on disk. The server does not get over a
// disk that was full by itself: a stream that could not write once refuses to
// for good, or all of JetStream is switched off. Where there is no room yet, the
// error says so and nothing is done.
func (s *Server) Mend() error {
	if _, err := checkRoom(s.dir, minRoom); err != nil {
		return err
	}
	if n := s.notary; n != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
	}
	if err := s.nats.ShutdownJetStream(); err != nil {
		return fmt.Errorf("stopping JetStream on %s: %w", s.dir, err)
	}
	if n := s.notary; n != nil {
		if err := s.checkStored(context.Background(), n.store); err != nil {
			return err
		}
	}
	cfg := s.jetStream // the server writes into what it is given
	if err := s.nats.EnableJetStream(&cfg); err != nil {
		return fmt.Errorf("starting JetStream on %s again: %w", s.dir, err)
	}
	return nil
}

// Broken is what the server knows that keeps it from storing; nil: nothing. It does not
// say so to whoever writes: to them it is as silent as one that has much to do.
func (s *Server) Broken() error { return broken(s.nats) }

// leastForWrites is how much has to be free for the server to store what comes: one of the
// largest messages.
const leastForWrites = schema.MaxPayload

// Unstorable is why the server takes no writes, and what to do; nil: it takes them.
func (s *Server) Unstorable() error {
	free, err := freeSpace(s.dir)
	if err != nil {
		return err
	}
	broken := s.Broken()
	switch {
	case free < leastForWrites || free < minRoom && (broken != nil || !s.Stores()):
		return fmt.Errorf("the disk of the data directory %s is full (%d MiB left), so nothing can be stored; free at least %d MiB: the broker continues by itself within some seconds", s.dir, free>>20, minRoom>>20)
	case broken != nil:
		return fmt.Errorf("nothing can be stored in the data directory %s, which the broker tries to mend: %w; its log says more", s.dir, broken)
	}
	return nil
}

func broken(s *server.Server) error {
	for _, e := range s.Healthz(&server.HealthzOptions{Details: true}).Errors {
		if e.Type == server.HealthzErrorJetStream || e.Type == server.HealthzErrorStream {
			return errors.New(e.Error)
		}
	}
	return nil
}
