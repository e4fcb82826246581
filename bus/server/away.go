package server

import (
	"fmt"

	"github.com/nats-io/nats-server/v2/server"
)

// mostConnections is more than one server bears.
const mostConnections = 1 << 20

// AskToLeave tells the clients that are connected over the network to go to another
// server of the cluster, as a server does that is about to stop, and returns which ones
// it told. What connects in this process stays.
func (s *Server) AskToLeave() (told []uint64, err error) {
	all, err := s.nats.Connz(&server.ConnzOptions{Limit: mostConnections})
	if err != nil {
		return nil, fmt.Errorf("listing the connections: %w", err)
	}
	for _, c := range all.Conns {
		if c.IP != "" && s.nats.LDMClientByID(c.Cid) == nil {
			told = append(told, c.Cid)
		}
	}
	return told, nil
}

// Drop closes the connections of those that were told to leave and did not, and returns
// how many there were.
func (s *Server) Drop(told []uint64) (dropped int) {
	for _, id := range told {
		if s.nats.DisconnectClientByID(id) == nil {
			dropped++
		}
	}
	return dropped
}
