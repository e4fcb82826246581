package server

import (
	"fmt"

	"github.com/nats-io/nats-server/v2/server"
)

// mostConnections is more than one server can have.
const mostConnections = 1 << 20

// AskToLeave asks the clients that are connected over the network to move to another server of the
// cluster, as a stopping server does, and returns their ids. Connections in this process stay.
func (s *Server) AskToLeave() (asked []uint64, err error) {
	all, err := s.nats.Connz(&server.ConnzOptions{Limit: mostConnections})
	if err != nil {
		return nil, fmt.Errorf("listing the connections: %w", err)
	}
	for _, c := range all.Conns {
		if c.IP != "" && s.nats.LDMClientByID(c.Cid) == nil {
			asked = append(asked, c.Cid)
		}
	}
	return asked, nil
}

// Drop closes the connections of clients that were asked to leave and did not, and returns their
// number.
func (s *Server) Drop(asked []uint64) (dropped int) {
	for _, id := range asked {
		if s.nats.DisconnectClientByID(id) == nil {
			dropped++
		}
	}
	return dropped
}
