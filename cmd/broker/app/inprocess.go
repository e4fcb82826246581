package app

import (
	"errors"
	"net"

	"github.com/nats-io/nats.go"
)

var _ nats.InProcessConnProvider = (*Broker)(nil)

// InProcessConn returns one end of a connection to the embedded server that uses no network. It
// makes a Broker a value for InProcess of client.Options.
func (b *Broker) InProcessConn() (net.Conn, error) {
	if b.server == nil {
		return nil, errors.New("this broker embeds no server; connect to its NATS deployment by URL")
	}
	return b.server.InProcessConn()
}
