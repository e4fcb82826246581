package app_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/bus/client"
	"github.com/hookfabric/hookfabric/bus/server/access"
	"github.com/hookfabric/hookfabric/bus/server/certs"
	"github.com/hookfabric/hookfabric/bus/server/realm"
	"github.com/hookfabric/hookfabric/cmd/broker/app"
	"github.com/hookfabric/hookfabric/schema"
)

// denying is a configuration that denies every call of Bash.
const denying = `{hooks: {PreToolUse: [{name: no, type: builtin, handler: deny, matcher: Bash}]}}`

// patient returns a context with a generous time limit.
func patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// startBrokers starts brokers that wait for each other. They stop when the test ends.
func startBrokers(t *testing.T, all ...app.Options) []*app.Broker {
	t.Helper()
	brokers := make([]*app.Broker, len(all))
	var starts errgroup.Group
	for i, o := range all {
		o.Sync, o.Logger = time.Minute, slog.New(slog.DiscardHandler)
		starts.Go(func() (err error) { brokers[i], err = app.New(patient(t), o); return err })
	}
	err := starts.Wait()
	t.Cleanup(func() {
		var stops errgroup.Group
		for _, b := range slices.DeleteFunc(brokers, func(b *app.Broker) bool { return b == nil }) {
			stops.Go(func() error { return b.Close(context.Background()) })
		}
		if err := stops.Wait(); err != nil {
			t.Log(err) // the last one cannot hand over its streams
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return brokers
}

// newRealm makes a realm beside a broker's data in dir.
func newRealm(t *testing.T, dir string) (folder string) {
	t.Helper()
	folder = filepath.Join(dir, "auth")
	if err := realm.Init(t.Context(), folder, realm.Limits{}); err != nil {
		t.Fatal(err)
	}
	return folder
}

// A broker with credentials must not start without them because a file is missing.
func TestABrokerDoesNotStartWithADamagedRealm(t *testing.T) {
	dir := t.TempDir()
	folder := newRealm(t, dir)
	aside := filepath.Join(t.TempDir(), "auth")
	start := func() error {
		b, err := app.New(patient(t), app.Options{Data: dir, Listen: "127.0.0.1:0", Sync: time.Minute, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		return b.Close(context.Background())
	}
	if err := start(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "realm.json")
	for _, c := range []struct {
		name   string
		damage func() error
		want   string
	}{
		{"realm.json is missing", func() error { return os.Remove(file) }, file + " is missing, and the folder has other files of a realm; restore " + folder},
		{"realm.json is empty", func() error { return os.Truncate(file, 0) }, "cannot use " + file},
		{"only the keys exist", func() error { return errors.Join(os.Remove(file), os.Remove(filepath.Join(folder, "lock"))) }, file + " is missing"},
		{"the folder is empty", func() error { return errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o700)) }, "its folder auth is missing: without it, every client could do everything"},
		{"only the lock exists", func() error {
			return errors.Join(os.Remove(file), os.RemoveAll(filepath.Join(folder, "seeds")))
		}, "its folder auth is missing: without it, every client could do everything"},
		{"the folder is missing", func() error { return os.RemoveAll(folder) }, "restore the folder from a backup, or name another data directory"},
		{"another realm replaces it", func() error {
			return errors.Join(os.RemoveAll(folder), realm.Init(t.Context(), folder, realm.Limits{}))
		}, "the realm in the folder " + folder + " does not belong to "},
	} {
		if err := errors.Join(copied(aside, folder), c.damage()); err != nil {
			t.Fatal(err)
		}
		if err := start(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
		if err := errors.Join(os.RemoveAll(folder), os.Rename(aside, folder), start()); err != nil {
			t.Fatalf("%s, and then a copy was restored: %v", c.name, err)
		}
	}
}

// copied copies a folder of secrets, with modes for the owner alone.
func copied(to, from string) error {
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return err
	}
	return filepath.WalkDir(to, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return os.Chmod(path, 0o600)
	})
}

// issued makes credentials and returns their file.
func issued(t *testing.T, folder string, i realm.Issue) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), i.Name+".creds")
	if _, err := realm.Add(t.Context(), folder, i, func(c []byte) error { return os.WriteFile(file, c, 0o600) }); err != nil {
		t.Fatal(err)
	}
	return file
}

func forAgent(name string) realm.Issue {
	return realm.Issue{Name: name, Grant: access.Grant{Role: access.Agent, Agents: []string{name}}}
}

// judged sends an event of an agent to a broker, with credentials.
func judged(t *testing.T, o client.Options, agent string) (*schema.Verdict, error) {
	t.Helper()
	o.Timeout = 30 * time.Second
	c, err := client.Connect(patient(t), o)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Ask(patient(t), &schema.Event{HookType: schema.PreToolUse, AgentID: agent, ToolName: "Bash", ToolInput: []byte(`{}`)})
}

// acceptedSoon waits until a broker accepts these credentials.
func acceptedSoon(t *testing.T, o bus.Options) *nats.Conn {
	t.Helper()
	for ctx := patient(t); ; {
		nc, err := bus.Connect(ctx, o)
		if err == nil {
			t.Cleanup(nc.Close)
			return nc
		}
		if !errors.Is(err, bus.ErrRefused) {
			t.Fatal(err)
		}
	}
}

// refusedSoon waits until a broker rejects these credentials.
func refusedSoon(t *testing.T, o bus.Options) {
	t.Helper()
	for ctx := patient(t); ; {
		nc, err := bus.Connect(ctx, o)
		switch {
		case errors.Is(err, bus.ErrRefused):
			return
		case ctx.Err() != nil:
			t.Fatalf("%s accepts revoked credentials: %v", o.URL, err)
		case err == nil:
			nc.Close()
		}
	}
}

// copyRealm copies a realm to a data directory as 'cp -p' does, with the modes of its keys.
func copyRealm(folder, data string) error {
	if err := os.CopyFS(filepath.Join(data, "auth"), os.DirFS(folder)); err != nil {
		return err
	}
	seeds, err := filepath.Glob(filepath.Join(data, "auth", "seeds", "*"))
	for _, seed := range seeds {
		err = errors.Join(err, os.Chmod(seed, 0o600))
	}
	return err
}

// Each broker has a realm folder of its own. A change in one folder takes effect at all brokers.
func TestCredentialsOfOneFolderCountInTheWholeCluster(t *testing.T) {
	t.Parallel()
	dirs, ca := []string{t.TempDir(), t.TempDir(), t.TempDir()}, bustest.NewAuthority(t, "ours")
	folder := newRealm(t, dirs[0])
	alice := issued(t, folder, forAgent("alice"))
	secret := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.WriteFile(secret, []byte("a secret that is long enough"), 0o600), os.WriteFile(secret+".yaml", []byte(denying), 0o600),
		copyRealm(folder, dirs[1]), copyRealm(folder, dirs[2])); err != nil {
		t.Fatal(err)
	}
	routes := bustest.FreeAddresses(t, 3)
	var all []app.Options
	for i, dir := range dirs {
		name := fmt.Sprint("b", i)
		all = append(all, app.Options{Data: dir, Listen: "127.0.0.1:0", Config: secret + ".yaml", TLS: ca.Issue(t, name),
			Cluster: app.Cluster{Name: "c", Server: name, Listen: routes[i], Routes: routes, Secret: secret, CA: ca.File}})
	}
	brokers := startBrokers(t, all...)
	trust := certs.Files{CA: ca.File}

	// All brokers accept credentials that were made in one folder while they run.
	if err := realm.AddTenant(t.Context(), folder, "blue", realm.Limits{}); err != nil {
		t.Fatal(err)
	}
	bob := issued(t, folder, forAgent("bob"))
	blue := issued(t, folder, realm.Issue{Name: "b", Tenant: "blue", Grant: access.Grant{Role: access.Broker}})
	for _, b := range brokers {
		nc := acceptedSoon(t, bus.Options{URL: b.URL(), Creds: blue, TLS: trust})
		sub, err := nc.SubscribeSync("hook.>")
		if err == nil {
			err = nc.FlushWithContext(patient(t))
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			err := nc.FlushWithContext(patient(t))
			if n, _, perr := sub.Pending(); err != nil || perr != nil || n > 0 {
				t.Errorf("another tenant receives %d messages, %v, %v", n, err, perr)
			}
		}()
	}
	for _, b := range brokers {
		for agent, file := range map[string]string{"alice": alice, "bob": bob} {
			v, err := judged(t, client.Options{URL: b.URL(), Creds: file, TLS: trust}, agent)
			if err != nil || v.Decision != schema.Deny || len(v.ExecutedHooks) != 1 {
				t.Errorf("%s at %s: %+v, %v", agent, b.URL(), v, err)
			}
		}
		if _, err := judged(t, client.Options{URL: b.URL(), Creds: alice, TLS: trust}, "bob"); !errors.Is(err, client.ErrDenied) {
			t.Errorf("alice sends events of bob at %s: %v", b.URL(), err)
		}
	}
	// All brokers reject credentials that were revoked in one folder, and all folders store that.
	if _, err := realm.Revoke(t.Context(), filepath.Join(dirs[1], "auth"), "", "alice"); err != nil {
		t.Fatal(err)
	}
	for i, b := range brokers {
		refusedSoon(t, bus.Options{URL: b.URL(), Creds: alice, TLS: trust})
		r, err := realm.Read(filepath.Join(dirs[i], "auth"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(r.Users, func(u realm.User) bool { return u.Name == "alice" && !u.Revoked.IsZero() }) {
			t.Errorf("the folder of %s does not have the revocation: %+v", b.URL(), r.Users)
		}
		if v, err := judged(t, client.Options{URL: b.URL(), Creds: bob, TLS: trust}, "bob"); err != nil || v.Decision != schema.Deny {
			t.Errorf("bob at %s: %+v, %v", b.URL(), v, err)
		}
	}
}
