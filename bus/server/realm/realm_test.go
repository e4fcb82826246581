package realm_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/hookfabric/hookfabric/bus"
	"github.com/hookfabric/hookfabric/bus/server/access"
	"github.com/hookfabric/hookfabric/bus/server/realm"
)

func made(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "new", "auth")
	if err := realm.Init(t.Context(), dir, realm.Limits{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, dir string) *realm.Realm {
	t.Helper()
	r, err := realm.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func agent(name string) realm.Issue {
	return realm.Issue{Name: name, Grant: access.Grant{Role: access.Agent, Agents: []string{name}}}
}

func nowhere([]byte) error { return nil }

func refused(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v; want one with %q", err, want)
	}
}

// A new realm in the place of a damaged one would end all credentials, and its streams would belong to no tenant.
func TestInitDoesNotReplaceADamagedRealm(t *testing.T) {
	dir := made(t)
	if err := os.Remove(filepath.Join(dir, "realm.json")); err != nil {
		t.Fatal(err)
	}
	if !realm.Exists(dir) {
		t.Error("a realm of which only the keys are left is taken for none")
	}
	_, err := realm.Read(dir)
	for _, err := range []error{err, realm.Init(t.Context(), dir, realm.Limits{})} {
		refused(t, err, "realm.json is missing, and the folder has other files of a realm; restore "+dir)
	}
	empty := t.TempDir()
	if realm.Exists(empty) || realm.Exists(filepath.Join(empty, "none")) {
		t.Error("a folder without anything is taken for a realm")
	}
	if _, err := realm.Read(empty); !errors.Is(err, realm.ErrNone) {
		t.Errorf("a folder without anything: %v", err)
	}
}

// An Init that failed before it wrote a key leaves a lock and a folder without keys. Another Init succeeds, and until
// then clients need no credentials.
func TestAnInitThatFailedLeavesNoRealm(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "auth")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	refused(t, realm.Init(ctx, dir, realm.Limits{}), "another process is changing")
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if realm.Exists(dir) {
		t.Error("what a failed init left is taken for a realm")
	}
	if _, err := realm.Read(dir); !errors.Is(err, realm.ErrNone) {
		t.Errorf("what a failed init left: %v", err)
	}
	if err := realm.Init(t.Context(), dir, realm.Limits{}); err != nil || !realm.Exists(dir) {
		t.Errorf("the next init: %v", err)
	}
}

func TestARealmIsMadeOnceAndIsPrivate(t *testing.T) {
	dir := made(t)
	refused(t, realm.Init(t.Context(), dir, realm.Limits{}), "already exists")
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "realm.json")); err != nil || strings.Contains(string(data), `"S`) {
		t.Errorf("there is a private key in the public file, or: %v", err)
	}
}

// Keys are secret, and the realm itself is not, but who may write it lets anyone in.
func TestARealmThatOthersCouldChangeIsRefused(t *testing.T) {
	dir := made(t)
	file := filepath.Join(dir, "realm.json")
	seeds, err := filepath.Glob(filepath.Join(dir, "*", "*.seed"))
	if err != nil || len(seeds) == 0 {
		t.Fatal(seeds, err)
	}
	mode := func(path string, mode fs.FileMode) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	mode(file, 0o644)
	read(t, dir)
	mode(file, 0o666)
	_, err = realm.Read(dir)
	refused(t, err, "chmod go-w "+file)
	mode(file, 0o600)
	for _, seed := range seeds {
		mode(seed, 0o644)
	}
	_, err = realm.Add(t.Context(), dir, agent("a"), nowhere)
	refused(t, err, "chmod 600 "+dir)
}

// Who can read credentials can use them.
func TestCredentialsThatOthersCanReadAreRefused(t *testing.T) {
	dir := made(t)
	file := filepath.Join(t.TempDir(), "a.creds")
	if _, err := realm.Add(t.Context(), dir, agent("a"), func(data []byte) error { return os.WriteFile(file, data, 0o644) }); err != nil {
		t.Fatal(err)
	}
	_, err := bus.Connect(t.Context(), bus.Options{URL: "nats://127.0.0.1:1", Creds: file})
	refused(t, err, "chmod 600 "+file)
	_, _, err = bus.CredsTimes(file)
	refused(t, err, "chmod 600 "+file)
}

func TestCredentialsAreIssuedAndRevoked(t *testing.T) {
	dir := made(t)
	var file string
	i := agent("alice")
	i.For = time.Hour
	u, err := realm.Add(t.Context(), dir, i, func(creds []byte) error { file = string(creds); return nil })
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.ParseDecoratedJWT([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil || claims.Subject != u.Key || claims.Expires != u.Expires.Unix() || !strings.Contains(file, "USER NKEY SEED") {
		t.Errorf("%+v, %v", claims, err)
	}
	_, err = realm.Add(t.Context(), dir, i, nowhere)
	refused(t, err, "already has credentials of the role agent")
	if _, err := realm.Revoke(t.Context(), dir, "", "alice"); err != nil {
		t.Fatal(err)
	}
	r := read(t, dir)
	tenant, err := r.Tenant("")
	if err != nil {
		t.Fatal(err)
	}
	account, err := jwt.DecodeAccountClaims(tenant.JWT)
	if err != nil || !account.IsClaimRevoked(claims) {
		t.Errorf("not revoked: %v", err)
	}
	if _, err := realm.Add(t.Context(), dir, i, nowhere); err != nil {
		t.Error(err)
	}
	if r = read(t, dir); len(r.Users) != 2 || !r.Users[0].Revoked.IsZero() || r.Users[1].Revoked.IsZero() {
		t.Errorf("%+v", r.Users)
	}
	_, err = realm.Revoke(t.Context(), dir, "", "bob")
	refused(t, err, "has no credentials with the name")
	_, err = realm.Revoke(t.Context(), dir, "blue", "bob")
	refused(t, err, "broker creds tenant add blue")
}

// Who cannot keep credentials has none.
func TestCredentialsThatCannotBeStoredAreRevoked(t *testing.T) {
	dir := made(t)
	full := errors.New("the disk is full")
	if _, err := realm.Add(t.Context(), dir, agent("alice"), func([]byte) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
	if r := read(t, dir); len(r.Users) != 1 || r.Users[0].Revoked.IsZero() {
		t.Errorf("%+v", r.Users)
	}
}

func TestNothingChangesByAFault(t *testing.T) {
	dir := made(t)
	before, err := os.ReadFile(filepath.Join(dir, "realm.json"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = realm.Add(t.Context(), dir, realm.Issue{Name: "x", Grant: access.Grant{Role: "king"}}, nowhere)
	refused(t, err, "there is no role")
	_, err = realm.Add(t.Context(), dir, realm.Issue{Grant: access.Grant{Role: access.Operator}}, nowhere)
	refused(t, err, "is empty")
	i := agent("a")
	i.Tenant = "blue"
	_, err = realm.Add(t.Context(), dir, i, nowhere)
	refused(t, err, "broker creds tenant add blue")
	i = agent("a")
	i.For = -time.Hour
	_, err = realm.Add(t.Context(), dir, i, nowhere)
	refused(t, err, "expired 1h0m0s ago")
	refused(t, realm.AddTenant(t.Context(), dir, "default", realm.Limits{}), "already exists")
	refused(t, realm.AddTenant(t.Context(), dir, "", realm.Limits{}), "is empty")
	refused(t, realm.AddTenant(t.Context(), dir, "b", realm.Limits{Disk: -1}), "is negative")
	if after, err := os.ReadFile(filepath.Join(dir, "realm.json")); err != nil || string(after) != string(before) {
		t.Errorf("it is another file: %v", err)
	}
}

func TestManyChangeARealmAtOnce(t *testing.T) {
	dir := made(t)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if _, err := realm.Add(t.Context(), dir, agent(fmt.Sprint("a", i)), nowhere); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if r := read(t, dir); len(r.Users) != 20 {
		t.Errorf("%d of 20", len(r.Users))
	}
}

func TestARealmThatWasTamperedWithIsRefused(t *testing.T) {
	dir, other := made(t), made(t)
	path := filepath.Join(dir, "realm.json")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	mine, theirs := read(t, dir), read(t, other)
	for name, data := range map[string]string{
		"junk":                    "{",
		"nothing":                 "{}",
		"another's tenant":        strings.Replace(string(good), mine.Tenants[0].JWT, theirs.Tenants[0].JWT, 1),
		"another's operator":      strings.Replace(string(good), mine.Operator.JWT, theirs.Operator.JWT, 1),
		"another system account":  strings.Replace(string(good), mine.System.JWT, theirs.System.JWT, 1),
		"claims that were edited": strings.Replace(string(good), mine.Tenants[0].JWT, mine.Tenants[0].JWT[:len(mine.Tenants[0].JWT)-4]+"AAAA", 1),
		"no default tenant":       strings.Replace(string(good), `"name":"default"`, `"name":"other"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := realm.Read(dir)
			refused(t, err, "cannot use")
		})
	}
	if _, err := realm.Read(t.TempDir()); !errors.Is(err, realm.ErrNone) {
		t.Errorf("%v", err)
	}
}

func TestAnExternalServerAcceptsOnlyTheCredentials(t *testing.T) {
	dir := made(t)
	if err := realm.AddTenant(t.Context(), dir, "blue", realm.Limits{}); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, i := range []realm.Issue{
		{Name: "red-broker", Grant: access.Grant{Role: access.Broker}}, {Name: "blue-broker", Tenant: "blue", Grant: access.Grant{Role: access.Broker}},
		agent("alice"), agent("revoked"),
	} {
		files[i.Name] = filepath.Join(t.TempDir(), i.Name)
		if _, err := realm.Add(t.Context(), dir, i, func(c []byte) error { return os.WriteFile(files[i.Name], c, 0o600) }); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := realm.Revoke(t.Context(), dir, "", "revoked"); err != nil {
		t.Fatal(err)
	}
	url := external(t, read(t, dir).ServerConfig())
	for name, want := range map[string]bool{"red-broker": true, "blue-broker": true, "alice": true, "revoked": false, "": false} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		nc, err := bus.Connect(ctx, bus.Options{URL: url, Creds: files[name]})
		cancel()
		if err == nil {
			if name == "red-broker" && nc.MaxPayload() != 8<<20 {
				t.Errorf("it takes %d bytes", nc.MaxPayload())
			}
			nc.Close()
		}
		if (err == nil) != want || err != nil && !errors.Is(err, bus.ErrRefused) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// external is a server of its own from a configuration, and where it listens.
func external(t *testing.T, config string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(path, []byte("listen: 127.0.0.1:-1\n"+config), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	o.NoSigs, o.NoLog, o.StoreDir = true, true, t.TempDir()
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("it does not start")
	}
	return s.ClientURL()
}
