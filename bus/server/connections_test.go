package server_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/server/access"
	"github.com/hookfabric/hookfabric/bus/server/realm"
)

// The limit holds with any name of the connections, and does not affect other credentials.
func TestTooManyConnectionsOfOneAgentAreClosed(t *testing.T) {
	dir := newRealm(t)
	s := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0", Auth: dir})
	agent := func(name string) string {
		return credentials(t, dir, realm.Issue{Name: name, Grant: access.Grant{Role: access.Agent, Agents: []string{name}}})
	}
	wild, quiet := agent("wild"), agent("quiet")
	connect := func(file string) (nc *nats.Conn, away chan struct{}) {
		away = make(chan struct{})
		nc, err := nats.Connect(s.ClientURL(), nats.UserCredentials(file), nats.NoReconnect(), nats.Timeout(time.Minute), nats.ClosedHandler(func(*nats.Conn) { close(away) }))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc, away
	}
	refused := func(more ...nats.Option) {
		t.Helper()
		nc, err := nats.Connect(s.ClientURL(), append(more, nats.UserCredentials(wild), nats.NoReconnect())...)
		if err != nil {
			return // it was closed before it was ready
		}
		t.Cleanup(nc.Close)
		bustest.Eventually(t, "one too many is sent away", nc.IsClosed)
	}
	most := access.Agent.Connections()
	early, stays := connect(wild) // before the watch
	sys, err := s.ConnectSystem(within(t), bus.Options{Name: "system"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sys.Close)
	log := make(lines, 100)
	if err := s.BoundConnections(t.Context(), sys, slog.New(slog.NewTextHandler(log, nil)), server.Flood{}); err != nil {
		t.Fatal(err)
	}
	_, other := connect(quiet)
	for range most - 1 {
		connect(wild)
	}
	refused()
	refused(nats.UserInfo("another user", ""))
	id, err := early.GetClientID()
	if err != nil {
		t.Fatal(err)
	}
	early.Close()
	<-stays
	bustest.Eventually(t, "the server notices that one has left", func() bool { return !s.Has(id) })
	_, again := connect(wild)
	refused()
	for name, gone := range map[string]chan struct{}{"another agent": other, "one after another has left": again} {
		select {
		case <-gone:
			t.Errorf("%s was closed", name)
		default:
		}
	}
	if n := len(log); n != 1 || !strings.Contains(<-log, "too many connections use the same credentials") {
		t.Errorf("%d lines were logged", n)
	}
}

// lines receives the lines of a log.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}
