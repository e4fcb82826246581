package app_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/server/access"
	"github.com/hookfabric/hookfabric/bus/server/realm"
	"github.com/hookfabric/hookfabric/cmd/broker/app"
	"github.com/hookfabric/hookfabric/schema"
)

// A site has a realm of its own, and of the hub only the credentials of its broker. Events of its
// agents are judged by the hub's configuration, within the permissions of their credentials, and are
// judged again after an outage of the hub.
func TestASiteHasItsOwnCredentials(t *testing.T) {
	t.Parallel()
	hubDir, siteDir, ca, at := t.TempDir(), t.TempDir(), bustest.NewAuthority(t, "ours"), bustest.FreeAddresses(t, 1)[0]
	hubFolder, siteFolder := newRealm(t, hubDir), newRealm(t, siteDir)
	config := filepath.Join(t.TempDir(), "hooks.yaml")
	if err := os.WriteFile(config, []byte(denying), 0o600); err != nil {
		t.Fatal(err)
	}
	hub := app.Options{Data: hubDir, Listen: "127.0.0.1:0", Config: config, TLS: ca.Issue(t, "hub"), Leaf: server.Leaf{Listen: at},
		Sync: time.Minute, Logger: slog.New(slog.DiscardHandler)}
	first, err := app.New(patient(t), hub)
	if err != nil {
		t.Fatal(err)
	}
	closed := false
	defer func() {
		if !closed {
			_ = first.Close(context.Background())
		}
	}()
	site := startBrokers(t, app.Options{Data: siteDir, Listen: "127.0.0.1:0", NoWorker: true, Leaf: server.Leaf{Remotes: []string{"tls://" + at}},
		Cluster: app.Cluster{CA: ca.File}, Creds: issued(t, hubFolder, realm.Issue{Name: "site", Grant: access.Grant{Role: access.Broker}})})[0]
	alice := client.Options{URL: site.URL(), Creds: issued(t, siteFolder, forAgent("alice"))}
	asked := func(when string) {
		t.Helper()
		for ctx := patient(t); ; { // the list of workers may be old
			v, err := judged(t, alice, "alice")
			if err == nil && v.Decision == schema.Deny && len(v.ExecutedHooks) == 1 && v.ExecutedHooks[0].Outcome == schema.OK {
				return
			}
			if ctx.Err() != nil {
				t.Fatalf("%s alice gets %+v, %v", when, v, err)
			}
		}
	}
	asked("at first")
	if _, err := judged(t, alice, "bob"); !errors.Is(err, client.ErrDenied) {
		t.Errorf("alice sends events of bob: %v", err)
	}
	stranger := client.Options{URL: site.URL(), Creds: issued(t, hubFolder, forAgent("carol"))}
	if _, err := judged(t, stranger, "carol"); !errors.Is(err, bus.ErrRefused) {
		t.Errorf("the site accepts credentials of the hub: %v", err)
	}
	if err := first.Close(patient(t)); err != nil {
		t.Fatal(err)
	}
	closed = true
	startBrokers(t, hub)
	asked("when the hub is back")
}
