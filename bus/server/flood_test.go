package server_test

import (
	"errors"
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

// TestCredentialsThatFloodAServerAreRefused, on all their connections, and those that they open
// next, for a while. Others that send as much as they may stay.
func TestCredentialsThatFloodAServerAreRefused(t *testing.T) {
	t.Parallel()
	for role, name := range map[access.Role]string{access.Agent: "agent wild", access.Host: "host wild"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startFlooded(t)
			file := f.issue(role, "wild")
			wild, idle := f.connect(file), f.connect(file)
			others := []*nats.Conn{f.connect(f.issue(access.Agent, "quiet")), f.connect(f.issue(access.Host, "busy"))}
			for range 2 * floodMessages { // more than an agent may
				if err := others[1].Publish("hook.v1.event.busy.PreToolUse", []byte("x")); err != nil {
					t.Fatal(err)
				}
			}
			for wild.Publish("hook.v1.event.wild.PreToolUse", []byte("x")) == nil {
			}
			bustest.Eventually(t, "its other connection is cut off, too", idle.IsClosed)
			if got := <-f.cut; got != name {
				t.Errorf("%q was cut off", got)
			}
			if _, err := bus.Connect(t.Context(), bus.Options{URL: f.server.ClientURL(), Creds: file}); !errors.Is(err, bus.ErrRefused) {
				t.Errorf("it comes again: %v", err)
			}
			for _, nc := range others {
				if err := nc.Flush(); err != nil {
					t.Error(err)
				}
			}
			if line := <-f.log; !strings.Contains(line, "--agent-messages") || !strings.Contains(line, name) {
				t.Error(line)
			}
			bustest.Eventually(t, "it is taken again", func() bool {
				nc, err := bus.Connect(t.Context(), bus.Options{URL: f.server.ClientURL(), Creds: file})
				if err == nil {
					nc.Close()
				}
				return err == nil
			})
		})
	}
}

// floodMessages is how many messages a second an agent may send.
const floodMessages = 1000

// flooded is a server with limits on sent messages.
type flooded struct {
	t      *testing.T
	server *server.Server
	dir    string
	log    lines
	cut    chan string
}

func startFlooded(t *testing.T) *flooded {
	t.Helper()
	f := &flooded{t: t, dir: newRealm(t), log: make(lines, 100), cut: make(chan string, 100)}
	f.server = bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0", Auth: f.dir})
	sys, err := f.server.ConnectSystem(within(t), bus.Options{Name: "system"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sys.Close)
	flood := server.Flood{Messages: floodMessages, Sent: func(name string) { f.cut <- name }}
	if err := f.server.BoundConnections(t.Context(), sys, slog.New(slog.NewTextHandler(f.log, nil)), flood); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *flooded) issue(role access.Role, name string) (file string) {
	f.t.Helper()
	return credentials(f.t, f.dir, realm.Issue{Name: string(role) + " " + name, Grant: access.Grant{Role: role, Agents: []string{name}}})
}

func (f *flooded) connect(file string) *nats.Conn {
	f.t.Helper()
	var nc *nats.Conn
	bustest.Eventually(f.t, "the server knows the credentials", func() (known bool) {
		var err error
		nc, err = nats.Connect(f.server.ClientURL(), nats.UserCredentials(file), nats.NoReconnect(), nats.Timeout(time.Minute))
		return err == nil
	})
	f.t.Cleanup(nc.Close)
	return nc
}
