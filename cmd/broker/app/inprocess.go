package app

import (
	"errors"
	"net"

	"github.com/nats-io/nats.go"
)

var _ nats.InProcessConnProvider = (*Broker)(nil)

// InProcessConn is one end of a connection to the embedded server that no
// network carries, so that a program with a broker of its own can ask it:
// a broker is what client.Options takes as InProcess.
func (b *Broker) InProcessConn() (net.Conn, error) {
	if b.server == nil {
		return nil, errors.New("this broker embeds no server; connect to its NATS deployment by URL")
	}
	return b.server.InProcessConn()
}
