package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/schema"
)

// Mend restarts JetStream on its files. The server does not recover from a full disk by itself: a stream
// with a failed write rejects all further ones, or JetStream is switched off. Without enough free space Mend
// does nothing and returns an error.
func (s *Server) Mend() error {
	if _, err := checkRoom(s.dir, minRoom); err != nil {
		return err
	}
	if errors.Is(s.Broken(), errHangs) {
		return fmt.Errorf("the data directory %s: %w", s.dir, errHangs)
	}
	err, returned := s.mending.run(s.restart)
	if !returned {
		return fmt.Errorf("the data directory %s: %w", s.dir, errHangs)
	}
	return err
}

// restart stops JetStream and starts it again.
func (s *Server) restart() error {
	if n := s.sequences; n != nil {
		n.mu.Lock()
		defer n.mu.Unlock()
	}
	if err := s.nats.ShutdownJetStream(); err != nil {
		return fmt.Errorf("stopping JetStream on %s: %w", s.dir, err)
	}
	if n := s.sequences; n != nil {
		if err := s.checkStored(context.Background(), n.store); err != nil {
			return err
		}
	}
	cfg := s.jetStream // the server changes its argument
	if err := s.nats.EnableJetStream(&cfg); err != nil {
		return fmt.Errorf("starting JetStream on %s again: %w", s.dir, err)
	}
	return nil
}

// Broken returns the error that keeps the server from storing; nil: none. Clients only see that writes get no
// answer.
func (s *Server) Broken() error {
	err, returned := s.health.run(func() error { return broken(s.nats) })
	if !returned {
		return errHangs
	}
	return err
}

// leastForWrites is the free space that the server needs for one of the largest messages.
const leastForWrites = schema.MaxPayload

// Full returns that the disk is full, and what to do; nil: it is not.
func (s *Server) Full() error {
	free, err := freeSpace(s.dir)
	if err == nil && free < leastForWrites {
		err = s.full(free)
	}
	return err
}

func (s *Server) full(free int64) error {
	return fmt.Errorf("the disk of the data directory %s is full (%d MiB left), so nothing can be stored; free at least %d MiB: the broker continues by itself within some seconds", s.dir, free>>20, minRoom>>20)
}

// Unstorable returns why the server takes no writes, and what to do; nil: it takes them.
func (s *Server) Unstorable() error {
	free, err := freeSpace(s.dir)
	if err != nil {
		return err
	}
	if free < leastForWrites {
		return s.full(free)
	}
	switch broken := s.Broken(); {
	case errors.Is(broken, errHangs):
		return fmt.Errorf("nothing can be stored in the data directory %s: %w", s.dir, broken)
	case free < minRoom && (broken != nil || !s.Stores()):
		return s.full(free)
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
