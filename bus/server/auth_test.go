package server_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/server"
	"github.com/hookfabric/hookfabric/bus/server/access"
	"github.com/hookfabric/hookfabric/bus/server/realm"
)

// newRealm makes a realm in a new folder.
func newRealm(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "auth")
	if err := realm.Init(t.Context(), dir, realm.Limits{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// credentials makes credentials and returns their file.
func credentials(t *testing.T, dir string, i realm.Issue) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), i.Name+".creds")
	if _, err := realm.Add(t.Context(), dir, i, func(creds []byte) error { return os.WriteFile(file, creds, 0o600) }); err != nil {
		t.Fatal(err)
	}
	return file
}

func operator(name, tenant string) realm.Issue {
	return realm.Issue{Name: name, Tenant: tenant, Grant: access.Grant{Role: access.Broker}}
}

// within returns a context with a generous time limit.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestClientsWithoutValidCredentialsAreRefused(t *testing.T) {
	dir := newRealm(t)
	s := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0", Auth: dir})
	other := credentials(t, newRealm(t), operator("other", ""))
	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    bus.Options
		want string
	}{
		"no credentials":          {bus.Options{}, "this fabric requires credentials; create a file with `broker creds add operator NAME` and name it with --creds or HOOKFABRIC_CREDS"},
		"none, for a worker":      {bus.Options{Role: "worker"}, "`broker creds add worker NAME`"},
		"the system's usual user": {bus.Options{User: "system", Password: "guess"}, "requires credentials"},
		"another fabric's":        {bus.Options{Creds: other}, "revoked, or are of another fabric"},
		"a missing file":          {bus.Options{Creds: junk + "2"}, "cannot read"},
		"an invalid file":         {bus.Options{Creds: junk}, "has no credentials of a NATS user"},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.URL = s.ClientURL()
			nc, err := bus.Connect(within(t), c.o)
			if err == nil {
				nc.Close()
			}
			wantError(t, err, c.want)
		})
	}
	nc, err := bus.Connect(within(t), bus.Options{URL: s.ClientURL(), Creds: credentials(t, dir, operator("b", ""))})
	if err != nil {
		t.Fatal(err)
	}
	nc.Close()
}

// A revocation takes effect on a running server, and closes connections.
func TestRevokedCredentialsEnd(t *testing.T) {
	t.Parallel()
	dir := newRealm(t)
	s := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0", Auth: dir})
	file := credentials(t, dir, operator("b", "")) // made after the start, and valid at once
	lost := make(chan bool, 10)
	o := bus.Options{URL: s.ClientURL(), Creds: file, OnState: func(up bool) {
		if !up {
			lost <- true
		}
	}}
	nc, err := bus.Connect(within(t), o)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	stays, err := bus.Connect(within(t), bus.Options{URL: s.ClientURL(), Creds: credentials(t, dir, operator("c", ""))})
	if err != nil {
		t.Fatal(err)
	}
	defer stays.Close()
	if _, err := realm.Revoke(t.Context(), dir, "", "b"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-lost:
	case <-within(t).Done():
		t.Fatal("the client is connected with revoked credentials")
	}
	o.OnState = nil
	_, err = bus.Connect(within(t), o)
	wantError(t, err, "revoked, or are of another fabric")
	if err := stays.FlushWithContext(within(t)); err != nil || stays.Stats().Reconnects > 0 {
		t.Errorf("another client was disconnected, too: %v", err)
	}
	// The name may get new credentials, and the old ones stay revoked after a restart.
	nc2, err := bus.Connect(within(t), bus.Options{URL: s.ClientURL(), Creds: credentials(t, dir, operator("b", ""))})
	if err != nil {
		t.Fatal(err)
	}
	nc2.Close()
	again := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0", Auth: dir})
	o.URL = again.ClientURL()
	_, err = bus.Connect(within(t), o)
	wantError(t, err, "revoked, or are of another fabric")
}

func TestExpiredCredentialsEnd(t *testing.T) {
	t.Parallel()
	dir := newRealm(t)
	s := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0", Auth: dir})
	i := operator("short", "")
	i.For = 2 * time.Second // as claims say it in seconds
	lost := make(chan bool, 10)
	o := bus.Options{URL: s.ClientURL(), Creds: credentials(t, dir, i), OnState: func(up bool) {
		if !up {
			lost <- true
		}
	}}
	nc, err := bus.Connect(within(t), o)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	select {
	case <-lost:
	case <-within(t).Done():
		t.Fatal("the client is connected with expired credentials")
	}
	for ctx := within(t); ; { // claims say it in seconds, the last of which is still good
		again, err := bus.Connect(ctx, bus.Options{URL: o.URL, Creds: o.Creds})
		if err != nil {
			wantError(t, err, "expired at")
			return
		}
		again.Close()
	}
}

// One of the tenants is made while the server runs.
func TestTenantsAreIsolated(t *testing.T) {
	t.Parallel()
	dir := newRealm(t)
	s := bustest.StartWith(t, server.Options{Listen: "127.0.0.1:0", Auth: dir})
	if err := realm.AddTenant(t.Context(), dir, "blue", realm.Limits{Connections: 2, Disk: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	var red, blue *nats.Conn
	file := credentials(t, dir, operator("b", "blue"))
	for blue == nil { // the server checks twice a second
		var err error
		if blue, err = bus.Connect(within(t), bus.Options{URL: s.ClientURL(), Creds: file}); err != nil && !errors.Is(err, bus.ErrRefused) {
			t.Fatal(err)
		}
	}
	defer blue.Close()
	red, err := s.Connect(within(t), bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer red.Close()
	heard, err := blue.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	for nc, bucket := range map[*nats.Conn]string{red: "of-red", blue: "of-blue"} {
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := js.CreateKeyValue(within(t), jetstream.KeyValueConfig{Bucket: bucket, MaxBytes: 1 << 20}); err != nil {
			t.Fatal(err)
		}
		for name := range js.KeyValueStoreNames(within(t)).Name() {
			if name != bucket {
				t.Errorf("the tenant with %s sees %s", bucket, name)
			}
		}
	}
	if s.Interest("anything") {
		t.Error("Interest reports a subscription of another tenant")
	}
	if err := errors.Join(red.Publish("hook.v1.event.a.PreToolUse", []byte("secret")), red.FlushWithContext(within(t)), blue.FlushWithContext(within(t))); err != nil {
		t.Fatal(err)
	}
	for {
		n, _, err := heard.Pending()
		if err != nil || n == 0 {
			break
		}
		if m, err := heard.NextMsgWithContext(within(t)); err == nil && string(m.Data) == "secret" {
			t.Error("a tenant receives a message of another one")
		}
	}
	js, err := jetstream.New(blue)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateKeyValue(within(t), jetstream.KeyValueConfig{Bucket: "large", MaxBytes: 128 << 20}); err == nil {
		t.Error("a tenant exceeds its storage")
	}
	second, err := bus.Connect(within(t), bus.Options{URL: s.ClientURL(), Creds: file})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if _, err := bus.Connect(within(t), bus.Options{URL: s.ClientURL(), Creds: file}); err == nil {
		t.Error("a tenant exceeds its connections")
	}
}

// A fabric begins to require credentials.
func TestStreamsFromBeforeTheRealmBelongToTheTenant(t *testing.T) {
	data, dir := t.TempDir(), newRealm(t)
	before, err := server.Start(t.Context(), server.Options{Dir: data})
	if err != nil {
		t.Fatal(err)
	}
	put(t, before)
	if err := before.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, err := server.Start(t.Context(), server.Options{Dir: data, Auth: dir})
		if err != nil {
			t.Fatal(err)
		}
		js, err := jetstream.New(bustest.Connect(t, s, "reader"))
		if err != nil {
			t.Fatal(err)
		}
		kv, err := js.KeyValue(within(t), "b")
		if err != nil {
			t.Fatal(err)
		}
		if e, err := kv.Get(within(t), "k"); err != nil || string(e.Value()) != "v" {
			t.Errorf("%v, %v", e, err)
		}
		if err := s.Mend(); err != nil {
			t.Error(err)
		}
		if e, err := kv.Get(within(t), "k"); err != nil || string(e.Value()) != "v" {
			t.Errorf("after JetStream was started again: %v, %v", e, err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// The credentials are transmitted in the CONNECT line.
func TestCredentialsWithTheMostNamesFitIntoALine(t *testing.T) {
	t.Parallel()
	dir := newRealm(t)
	s := bustest.StartWith(t, server.Options{Auth: dir})
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("%03d%s", i, strings.Repeat("=", 41))) // each of which becomes three
	}
	for _, g := range []access.Grant{{Role: access.Host, Agents: names}, {Role: access.Orchestrator, Agents: names}, {Role: access.Worker, Pools: names}} {
		// Under the race detector the server takes more than a second for so many permissions.
		nc, err := bus.Connect(within(t), bus.Options{InProcess: s, Within: 20 * time.Second, Creds: credentials(t, dir, realm.Issue{Name: string(g.Role), Grant: g})})
		if err != nil {
			t.Errorf("%s of 100 names: %v", g.Role, err)
			continue
		}
		nc.Close()
	}
}

// next returns the next value.
func next[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-within(t).Done():
		t.Fatal("no value comes")
	}
	return v
}

// A connection name alone must not make a worker look dead, nor credentials of a worker one of another pool.
func TestOnlyDisconnectsOfWorkersAreReported(t *testing.T) {
	dir := newRealm(t)
	if err := realm.AddTenant(t.Context(), dir, "blue", realm.Limits{}); err != nil {
		t.Fatal(err)
	}
	s := bustest.StartWith(t, server.Options{Auth: dir})
	sys, err := s.ConnectSystem(within(t), bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close()
	gone := make(chan server.Left, 10)
	if err := s.WatchDisconnects(t.Context(), sys, func(l server.Left) { gone <- l }); err != nil {
		t.Fatal(err)
	}
	worker := func(pools ...string) access.Grant { return access.Grant{Role: access.Worker, Pools: pools} }
	for _, c := range []struct {
		called string
		issue  realm.Issue
	}{
		{"worker:liar", realm.Issue{Name: "a", Grant: access.Grant{Role: access.Agent, Agents: []string{"a"}}}},
		{"worker:foreign", realm.Issue{Name: "w", Tenant: "blue", Grant: worker("p")}},
		{"worker:real", realm.Issue{Name: "w", Grant: worker("p", "P")}},
		{"worker:real", realm.Issue{Name: "other", Grant: worker("other")}},
		{"worker:real", realm.Issue{Name: "all", Grant: worker(access.Everyone)}},
	} {
		nc, err := bus.Connect(within(t), bus.Options{InProcess: s, Name: c.called, Creds: credentials(t, dir, c.issue)})
		if err != nil {
			t.Fatal(err)
		}
		nc.Close()
	}
	for _, pools := range [][]string{{"p", "P"}, {"other"}, nil} {
		if l := next(t, gone); l.Name != "worker:real" || !slices.Equal(l.Pools, pools) {
			t.Errorf("%+v is gone, not from %q", l, pools)
		}
	}
}

func TestAServerDoesNotStartWithAnInvalidRealm(t *testing.T) {
	junk := newRealm(t)
	if err := os.WriteFile(filepath.Join(junk, "realm.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		o    server.Options
		want string
	}{
		"a missing tenant":           {server.Options{Auth: newRealm(t), Tenant: "blue"}, "create it with `broker creds tenant add blue`"},
		"a tenant without a realm":   {server.Options{Tenant: "blue"}, "`broker creds init`"},
		"an invalid realm":           {server.Options{Auth: junk}, "cannot use"},
		"other machines without TLS": {server.Options{Auth: newRealm(t), Listen: "0.0.0.0:4222"}, "--tls-cert and --tls-key"},
		"no realm":                   {server.Options{Auth: t.TempDir()}, "create it with `broker creds init`"},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Dir = t.TempDir()
			_, err := server.Start(t.Context(), c.o)
			wantError(t, err, c.want)
		})
	}
}

func TestCredentialsFilesThatOthersCanReadAreRejected(t *testing.T) {
	dir := newRealm(t)
	s := bustest.StartWith(t, server.Options{Auth: dir})
	file := credentials(t, dir, operator("b", ""))
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o440: false, 0o644: true} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		nc, err := bus.Connect(within(t), bus.Options{InProcess: s, Creds: file})
		if err == nil {
			nc.Close()
		}
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), "chmod 600 "+file) {
			t.Errorf("of a file with the mode %v it is said: %v", mode, err)
		}
	}
}
