package roles

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/loadtest/proc"
	"github.com/hookfabric/hookfabric/schema"
)

// The responder on these subjects answers from within the server's process: at once, or
// with the answer of the raw responder in another process.
const (
	insideSubject = "loadtest.inside"
	relaySubject  = "loadtest.relay"
)

// relayTime limits how long the raw responder may take.
const relayTime = 5 * time.Second

// startInside runs a server with a responder to bare requests in its process. A request
// takes the same way as a call to an aggregator, and from there to a worker, but over NATS
// only. The responder neither decodes events nor encodes answers.
func startInside(_ context.Context, _ struct{}) (*proc.Role, error) {
	ready, err := schema.Marshal(folded(RawResponder, allowed(1)))
	if err != nil {
		return nil, fmt.Errorf("encoding the answer: %w", err)
	}
	s, err := serverOf(&server.Options{ServerName: Inside, Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true, MaxPayload: schema.MaxPayload})
	if err != nil {
		return nil, err
	}
	stop := stopping(s)
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.Name("loadtest "+Inside))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connecting within the process: %w", err), stop())
	}
	_, err = nc.Subscribe(insideSubject, func(m *nats.Msg) { _ = m.Respond(ready) })
	if err == nil {
		_, err = nc.Subscribe(relaySubject, func(m *nats.Msg) { go relay(nc, m) })
	}
	if err == nil {
		err = nc.FlushTimeout(upIn)
	}
	end := func() error {
		nc.Close()
		return stop()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listening within the server's process: %w", err), end())
	}
	return &proc.Role{Facts: Address{URL: s.ClientURL()}, Do: Settle, Close: end}, nil
}

// relay answers m with the raw responder's answer. If there is no answer, the requester's
// deadline reports it.
func relay(nc *nats.Conn, m *nats.Msg) {
	if said, err := nc.Request(rawSubject, m.Data, relayTime); err == nil {
		_ = m.Respond(said.Data)
	}
}
