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

// Who is asked on these subjects answers from within the server's process: at once, or
// with what the raw responder, which is elsewhere, says.
const (
	insideSubject = "loadtest.inside"
	relaySubject  = "loadtest.relay"
)

// relayTime is how long the raw responder may take.
const relayTime = 5 * time.Second

// startInside runs a server of its own with somebody in its process who answers bare
// requests: the way that a call takes to an aggregator, and on from there to a worker, with
// nothing on it but NATS. Neither event nor answer is decoded or encoded there.
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

// relay answers m with what the raw responder says. Without an answer the requester's
// deadline reports it.
func relay(nc *nats.Conn, m *nats.Msg) {
	if said, err := nc.Request(rawSubject, m.Data, relayTime); err == nil {
		_ = m.Respond(said.Data)
	}
}
