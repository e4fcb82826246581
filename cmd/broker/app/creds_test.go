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

// A keeper is somebody who says who may use a fabric.
type keeper struct {
	t         *testing.T
	dir, data string
}

func newKeeper(t *testing.T) *keeper {
	k := &keeper{t: t, dir: t.TempDir()}
	k.data = filepath.Join(k.dir, "data")
	t.Chdir(k.dir)
	return k
}

// run is `broker` with those arguments; want is the exit code.
func (k *keeper) run(want int, args ...string) (stdout, stderr string) {
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

// says is run with a part of what it says, on whatever.
func (k *keeper) says(want string, code int, args ...string) {
	k.t.Helper()
	out, errs := k.run(code, args...)
	if !strings.Contains(out+errs, want) {
		k.t.Errorf("broker %s says\n%s%swhich has no %q", strings.Join(args, " "), out, errs, want)
	}
}

func TestCreds(t *testing.T) {
	k := newKeeper(t)
	k.says("create it with `broker creds init`", 1, "creds", "list")
	k.says("create it with `broker creds init`", 1, "creds", "add", "operator", "olga")
	k.says("next: 'broker creds add operator NAME'", 0, "creds", "init")
	k.says("already exists", 1, "creds", "init")
	k.says("wrote olga.creds: operator of the tenant default, valid without an expiry", 0, "creds", "add", "operator", "olga")
	k.says("valid until 2", 0, "creds", "add", "worker", "w", "--pool", "heavy", "--pool", "light", "--ttl", "30d")
	k.says("can act for EVERY agent", 0, "creds", "add", "host", "h", "--agents", "*")
	k.says("created the tenant blue", 0, "creds", "tenant", "add", "blue")
	k.says("agent of the tenant blue", 0, "creds", "add", "agent", "alice/1", "--tenant", "blue")
	k.says("valid until 2", 0, "creds", "renew", "w")
	k.says("is revoked", 0, "creds", "revoke", "w")
	k.says("revoked", 0, "creds", "list")
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
	k.says("operator: ey", 0, "creds", "export")
	k.says("", 0, "creds", "export", "--out", "auth.conf")
	k.nothingSecret(out)
}

// nothingSecret looks for private keys where none belong.
func (k *keeper) nothingSecret(said string) {
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
		if strings.Contains(said+string(export), seed) {
			k.t.Error("a private key is shown")
		}
	}
}

func TestCredsThatMakeNoSense(t *testing.T) {
	k := newKeeper(t)
	k.run(0, "creds", "init")
	k.says("role or name is missing", 2, "creds", "add", "agent")
	k.says("there is no role \"king\"; use agent, host", 2, "creds", "add", "king", "x")
	k.says("remove --agents", 2, "creds", "add", "agent", "a", "--agents", "b")
	k.says("write --agents a,b,c", 2, "creds", "add", "host", "h")
	k.says("takes no --pool", 2, "creds", "add", "operator", "o", "--pool", "p")
	k.says("broker creds tenant add blue", 1, "creds", "add", "operator", "o", "--tenant", "blue")
	for _, ttl := range []string{"30", "d", "-1d", "x", "1d2", "0d", "1ms", "99999d", "4000d"} {
		k.says("--ttl", 2, "creds", "add", "operator", "o", "--ttl="+ttl)
	}
	k.says("already exists", 1, "creds", "tenant", "add", "default")
	k.says("is negative", 1, "creds", "tenant", "add", "t", "--max-disk", "-1")
	k.says("has no credentials with the name", 1, "creds", "revoke", "x")
	k.says("has no credentials with the name", 1, "creds", "renew", "x")
	k.says("the name is missing", 2, "creds", "revoke")
	if err := os.WriteFile("mine.creds", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	k.says("already exists; move it away", 1, "creds", "add", "operator", "mine")
	k.says("create the folder", 1, "creds", "add", "operator", "o", "--out", "no/o.creds")
	if out, _ := k.run(0, "creds", "list"); strings.Count(out, "\n") != 1 {
		t.Errorf("somebody has credentials:\n%s", out)
	}
}

// TestCommandsSayWhoTheyAre, where the fabric asks.
func TestCommandsSayWhoTheyAre(t *testing.T) {
	k := newKeeper(t)
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
		k.says(asks, 1, args...)
		k.run(map[bool]int{true: 1}[args[0] == "round"], append(args, "--creds", "olga.creds")...) // alice has no round yet
	}
	k.says("queued for agent alice", 0, "inject", "--agent", "alice", "--creds", "orc.creds", "hello")
	const notFor = "do not permit this"
	k.says(notFor, 1, "inject", "--agent", "bob", "--creds", "orc.creds", "hello")
	k.says(notFor, 1, "inject", "--all", "--creds", "orc.creds", "hello")
	for _, args := range [][]string{{"status"}, {"feed"}, {"feed", "--follow"}, {"freeze", "--all"}, {"freeze", "--list"}, {"thaw", "--all"}} {
		k.says(notFor, 1, append(args, "--creds", "alice.creds")...)
		k.says(asks, 1, args...)
	}
	k.says(notFor, 1, "inject", "--agent", "alice", "--creds", "orc.creds", strings.Repeat("long ", 100_000))
	k.says("queued for agent alice", 0, "inject", "--agent", "alice", "--creds", "olga.creds", strings.Repeat("long ", 100_000))
	k.run(0, "creds", "revoke", "gone")
	for {
		if _, said := k.run2("status", "--creds", "gone.creds"); strings.Contains(said, "revoked, or are of another fabric") {
			break
		}
	}
}

// run2 is run for whatever exit code.
func (k *keeper) run2(args ...string) (code int, said string) {
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	code = app.Main(ctx, args, strings.NewReader(""), &out, &out)
	return code, out.String()
}

// TestStatusSaysWhoCanNotReadTheRealm, as text and as JSON, until that broker can again.
func TestStatusSaysWhoCanNotReadTheRealm(t *testing.T) {
	k := newKeeper(t)
	k.run(0, "creds", "init")
	k.run(0, "creds", "add", "operator", "olga")
	t.Setenv("HOOKFABRIC_NATS", startBrokers(t, app.Options{Data: k.data, Listen: "127.0.0.1:0"})[0].URL())
	const says = "; it CANNOT READ the stored credentials and uses those that it read last, so it still accepts revoked ones: " +
		"see its log; make the folder auth in its data directory readable for the broker's user, or restore it from a backup\n"
	const member = `"realm_unreadable":true`
	file := filepath.Join(k.data, "auth", "realm.json")
	for _, c := range []struct {
		from, to string
		told     bool
	}{{file, file + ".away", true}, {file + ".away", file, false}} {
		if err := os.Rename(c.from, c.to); err != nil {
			t.Fatal(err)
		}
		for ctx := patient(t); ; {
			out, _ := k.run(0, "status", "--creds", "olga.creds")
			if strings.Contains(out, says) == c.told {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("it is told: %v, want %v:\n%s", !c.told, c.told, out)
			}
		}
		if out, _ := k.run(0, "status", "--json", "--creds", "olga.creds"); strings.Contains(out, member) != c.told {
			t.Errorf("want %s: %v, in\n%s", member, c.told, out)
		}
	}
}

// Each tenant is bounded, unless somebody says otherwise.
func TestTenantsAreBounded(t *testing.T) {
	k := newKeeper(t)
	k.says("use 0 for the server's limit", 1, "creds", "init", "--max-connections", "-1")
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
