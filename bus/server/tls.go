package server

import (
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/bus"
)

const (
	// tlsTimeout is how long a handshake may take among servers.
	tlsTimeout = 5 * time.Second
	// greetTime is how long it may take until a client has said who it is, the handshake
	// included: where very many come back at once it takes as long as they wait at most.
	greetTime = bus.DialLimit
)

// secure has the server show its certificate to clients, and look at theirs. What
// connects in this process passes no network and shows none.
func (o *Options) secure(opts *server.Options) error {
	if o.TLS.Empty() {
		return nil
	}
	if !o.TLS.Shows() {
		return fmt.Errorf("--tls-ca %s requires certificates of clients, and the server has no certificate; name it with --tls-cert and its key with --tls-key", o.TLS.CA)
	}
	conf, err := o.TLS.Server(newLogger(o.Logger).log)
	if err != nil {
		return err
	}
	opts.TLSConfig, opts.TLSTimeout = conf, greetTime.Seconds()
	opts.TLSVerify = o.TLS.CA != ""
	return nil
}
