package server

import (
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/bus"
)

const (
	// tlsTimeout bounds a TLS handshake between servers.
	tlsTimeout = 5 * time.Second
	// greetTime bounds the handshake with a client, including its credentials. When very many
	// clients return at once it takes as long as they wait at most.
	greetTime = bus.DialLimit
)

// secure configures TLS for clients. Connections in this process do not use it.
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
