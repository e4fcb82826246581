package app_test

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/cmd/broker/app"
)

// An administrator manages the credentials of a fabric.
type administrator struct {
	t         *testing.T
	dir, data string
}

func newAdministrator(t *testing.T) *administrator {
	k := &administrator{t: t, dir: t.TempDir()}
	k.data = filepath.Join(k.dir, "data")
	t.Chdir(k.dir)
	return k
}

// run runs `broker`; want is the exit code.
func (k *administrator) run(want int, args ...string) (stdout, stderr string) {
	k.t.Helper()
	k.t.Setenv("HOOKFABRIC_DATA", k.data)
	var out, errs bytes.Buffer
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	if code := app.Main(ctx, args, strings.NewReader(""), &out, &errs); code != want {
		k.t.Errorf("broker %s ends with %d, want %d:\n%s%s", strings.Join(args, " "), code, want, &out, &errs)
	}
	return out.String(), errs.String()
}

// prints runs `broker`; want is a part of stdout or stderr.
func (k *administrator) prints(want string, code int, args ...string) {
	k.t.Helper()
	out, errs := k.run(code, args...)
	if !strings.Contains(out+errs, want) {
		k.t.Errorf("broker %s prints\n%s%swithout %q", strings.Join(args, " "), out, errs, want)
	}
}

func TestCreds(t *testing.T) {
	k := newAdministrator(t)
	k.prints("create it with `broker creds init`", 1, "creds", "list")
	k.prints("create it with `broker creds init`", 1, "creds", "add", "operator", "olga")
	k.prints("next: 'broker creds add operator NAME'", 0, "creds", "init")
	k.prints("already exists", 1, "creds", "init")
	k.prints("wrote olga.creds: operator of the tenant default, valid without an expiry", 0, "creds", "add", "operator", "olga")
	k.prints("valid until 2", 0, "creds", "add", "worker", "w", "--pool", "heavy", "--pool", "light", "--ttl", "30d")
	k.prints("can act for EVERY agent", 0, "creds", "add", "host", "h", "--agents", "*")
	k.prints("created the tenant blue", 0, "creds", "tenant", "add", "blue")
	k.prints("agent of the tenant blue", 0, "creds", "add", "agent", "alice/1", "--tenant", "blue")
	k.prints("valid until 2", 0, "creds", "renew", "w")
	k.prints("is revoked", 0, "creds", "revoke", "w")
	k.prints("revoked", 0, "creds", "list")
	info, err := os.Stat(filepath.Join(k.dir, "alice=2F1.creds"))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	out, _ := k.run(0, "creds", "list", "--json")
	for _, want := range []string{`"name":"olga"`, `"role":"worker"`, `"pools":["heavy","light"]`, `"state":"revoked"`, `"tenant":"blue"`, `"agents":["alice/1"]`, `"expires":"2`} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is not in %s", want, out)
		}
	}
	k.prints("operator: ey", 0, "creds", "export")
	k.prints("", 0, "creds", "export", "--out", "auth.conf")
	k.checkNoSecrets(out)
}

// checkNoSecrets checks that an output has no private keys.
func (k *administrator) checkNoSecrets(output string) {
	k.t.Helper()
	export, err := os.ReadFile(filepath.Join(k.dir, "auth.conf"))
	if err != nil {
		k.t.Fatal(err)
	}
	var seeds []string
	err = filepath.WalkDir(filepath.Join(k.data, "auth", "seeds"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		seeds = append(seeds, string(data))
		return err
	})
	if err != nil || len(seeds) != 4 {
		k.t.Errorf("%d keys: %v", len(seeds), err)
	}
	for _, seed := range seeds {
		if strings.Contains(output+string(export), seed) {
			k.t.Error("a private key is shown")
		}
	}
}

func TestCredsRejectsWrongUsage(t *testing.T) {
	k := newAdministrator(t)
	k.run(0, "creds", "init")
	k.prints("role or name is missing", 2, "creds", "add", "agent")
	k.prints("there is no role \"king\"; use agent, host", 2, "creds", "add", "king", "x")
	k.prints("remove --agents", 2, "creds", "add", "agent", "a", "--agents", "b")
	k.prints("write --agents a,b,c", 2, "creds", "add", "host", "h")
	k.prints("takes no --pool", 2, "creds", "add", "operator", "o", "--pool", "p")
	k.prints("broker creds tenant add blue", 1, "creds", "add", "operator", "o", "--tenant", "blue")
	for _, ttl := range []string{"30", "d", "-1d", "x", "1d2", "0d", "1ms", "99999d", "4000d"} {
		k.prints("--ttl", 2, "creds", "add", "operator", "o", "--ttl="+ttl)
	}
	k.prints("already exists", 1, "creds", "tenant", "add", "default")
	k.prints("is negative", 1, "creds", "tenant", "add", "t", "--max-disk", "-1")
	k.prints("has no credentials with the name", 1, "creds", "revoke", "x")
	k.prints("has no credentials with the name", 1, "creds", "renew", "x")
	k.prints("the name is missing", 2, "creds", "revoke")
	if err := os.WriteFile("mine.creds", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	k.prints("already exists; move it away", 1, "creds", "add", "operator", "mine")
	k.prints("create the folder", 1, "creds", "add", "operator", "o", "--out", "no/o.creds")
	if out, _ := k.run(0, "creds", "list"); strings.Count(out, "\n") != 1 {
		t.Errorf("there are credentials:\n%s", out)
	}
}

func TestCommandsNeedCredentialsThatPermitThem(t *testing.T) {
	k := newAdministrator(t)
	k.run(0, "creds", "init")
	for _, args := range [][]string{{"operator", "olga"}, {"agent", "alice"}, {"orchestrator", "orc", "--agents", "alice"}, {"operator", "gone"}} {
		k.run(0, append([]string{"creds", "add"}, args...)...)
	}
	b, err := app.New(t.Context(), app.Options{Data: k.data, Listen: "127.0.0.1:0", Sync: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("HOOKFABRIC_NATS", b.URL())
	const asks = "this fabric requires credentials; create a file with `broker creds add operator NAME` and name it with --creds or HOOKFABRIC_CREDS"
	for _, args := range [][]string{{"status"}, {"inject", "--agent", "alice", "hello"}, {"pending"}, {"config", "history"}, {"round", "show", "--agent", "alice"}} {
		k.prints(asks, 1, args...)
		k.run(map[bool]int{true: 1}[args[0] == "round"], append(args, "--creds", "olga.creds")...) // alice has no round yet
	}
	k.prints("queued for agent alice", 0, "inject", "--agent", "alice", "--creds", "orc.creds", "hello")
	const notFor = "do not permit this"
	k.prints(notFor, 1, "inject", "--agent", "bob", "--creds", "orc.creds", "hello")
	k.prints(notFor, 1, "inject", "--all", "--creds", "orc.creds", "hello")
	for _, args := range [][]string{{"status"}, {"feed"}, {"feed", "--follow"}, {"freeze", "--all"}, {"freeze", "--list"}, {"thaw", "--all"}} {
		k.prints(notFor, 1, append(args, "--creds", "alice.creds")...)
		k.prints(asks, 1, args...)
	}
	k.prints(notFor, 1, "inject", "--agent", "alice", "--creds", "orc.creds", strings.Repeat("long ", 100_000))
	k.prints("queued for agent alice", 0, "inject", "--agent", "alice", "--creds", "olga.creds", strings.Repeat("long ", 100_000))
	k.run(0, "creds", "revoke", "gone")
	for {
		if _, output := k.run2("status", "--creds", "gone.creds"); strings.Contains(output, "revoked, or are of another fabric") {
			break
		}
	}
}

// run2 is run that accepts any exit code.
func (k *administrator) run2(args ...string) (code int, output string) {
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	code = app.Main(ctx, args, strings.NewReader(""), &out, &out)
	return code, out.String()
}

// Status reports it as text and as JSON, until the broker can read the credentials again.
func TestStatusNamesABrokerThatCannotReadItsRealm(t *testing.T) {
	k := newAdministrator(t)
	k.run(0, "creds", "init")
	k.run(0, "creds", "add", "operator", "olga")
	t.Setenv("HOOKFABRIC_NATS", startBrokers(t, app.Options{Data: k.data, Listen: "127.0.0.1:0"})[0].URL())
	const says = "; it CANNOT READ the stored credentials and uses those that it read last, so it still accepts revoked ones: " +
		"see its log; make the folder auth in its data directory readable for the broker's user, or restore it from a backup\n"
	const member = `"realm_unreadable":true`
	file := filepath.Join(k.data, "auth", "realm.json")
	for _, c := range []struct {
		from, to string
		reported bool
	}{{file, file + ".away", true}, {file + ".away", file, false}} {
		if err := os.Rename(c.from, c.to); err != nil {
			t.Fatal(err)
		}
		for ctx := patient(t); ; {
			out, _ := k.run(0, "status", "--creds", "olga.creds")
			if strings.Contains(out, says) == c.reported {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("reported: %v, want %v:\n%s", !c.reported, c.reported, out)
			}
		}
		if out, _ := k.run(0, "status", "--json", "--creds", "olga.creds"); strings.Contains(out, member) != c.reported {
			t.Errorf("want %s: %v, in\n%s", member, c.reported, out)
		}
	}
}

func TestTenantsHaveLimitsUnlessSetOtherwise(t *testing.T) {
	k := newAdministrator(t)
	k.prints("use 0 for the server's limit", 1, "creds", "init", "--max-connections", "-1")
	k.run(0, "creds", "init", "--max-disk", "100")
	k.run(0, "creds", "tenant", "add", "blue")
	k.run(0, "creds", "tenant", "add", "free", "--max-connections", "0", "--max-subscriptions", "0", "--max-disk", "0", "--max-memory", "0")
	out, _ := k.run(0, "creds", "list", "--json")
	for _, limits := range []string{
		`"limits":{"connections":50000,"subscriptions":5000000,"disk":104857600}`,
		`"limits":{"connections":10000,"subscriptions":1000000,"disk":2147483648,"memory":67108864}`,
		`"limits":{}`,
	} {
		if !strings.Contains(out, limits) {
			t.Errorf("no tenant has %s: %s", limits, out)
		}
	}
}
