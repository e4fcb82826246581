package clients_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A fabric is a broker that is ready.
type fabric struct {
	*process

	url string // of the bus
	dir string // of its configuration
}

// shells is the matcher of all clients' tools for shell commands.
const shells = "Bash|bash|run_shell_command"

// startFabric starts a broker with hooks until the test ends.
func startFabric(t testing.TB, hooks string) *fabric {
	t.Helper()
	dir := t.TempDir()
	config := filepath.Join(dir, "hooks.yaml")
	if err := os.WriteFile(config, []byte(hooks), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	p := start(t, env, "broker", "--config", config, "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
	return &fabric{process: p, dir: dir, url: p.mustSay(t, `(?m)^  bus +(nats://\S+)$`)[1]}
}

// inject has an agent read a text when it can.
func (f *fabric) inject(t testing.TB, r route, text string) {
	t.Helper()
	to := []string{"--agent", agent}
	if r.unnamed {
		to = []string{"--all", "--late-joiners"}
	}
	f.operate(t, slices.Concat([]string{"inject"}, to, []string{text})...)
}

// freeze has the fabric refuse the tool calls of all agents.
func (f *fabric) freeze(t testing.TB, reason string) {
	t.Helper()
	f.operate(t, "freeze", "--all", "--reason", reason)
}

// operate runs a command of the broker's operators.
func (f *fabric) operate(t testing.TB, args ...string) {
	t.Helper()
	args = slices.Insert(args, 1, "--nats", f.url)
	if out, err := run(t.Context(), f.dir, []string{"HOME=" + f.dir}, program("broker"), args...); err != nil {
		t.Fatalf("broker %s: %v\n%s", args[0], err, out)
	}
}
