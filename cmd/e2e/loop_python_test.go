package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

// A pythonQuery is what the agent of testdata/loop says of its query.
type pythonQuery struct {
	Status  string   `json:"status"`
	Content string   `json:"content"`
	Error   string   `json:"error"`
	Errors  []string `json:"errors"`
	Calls   int      `json:"calls"`
	Ends    []string `json:"ends"`
	Ran     []string `json:"ran"`
	News    int      `json:"news"`
	Counted int      `json:"counted"`
}

// An agent in Python asks a real daemon about everything, and goes on by the shim when
// that is killed. What comes for it when its answer is there already is read, and read once.
func TestPythonLoop(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3: agents' loops in Python stay untried with a real fabric")
	}
	whole := pythonQuery{Status: "answered", Content: "<answer>43</answer>", Errors: []string{}, Calls: 4, Ends: []string{"answered"},
		Ran: []string{"door", "door"}, News: 1, Counted: 2}
	for _, c := range []struct {
		name string
		kill bool
		env  []string
		want pythonQuery
	}{
		{name: "with a daemon", want: whole},
		{name: "whose daemon is killed", kill: true, want: whole},
		{name: "whose daemon is killed, and there is no shim", kill: true, env: []string{"HOOKFABRIC_AGENTSHIM=no-such-shim"},
			want: pythonQuery{Status: "failed", Calls: 2, Ends: []string{"failed"}, Ran: []string{"door", "door"}, Counted: 2,
				Error: "no-such-shim"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.Abs("testdata/loop")
			if err != nil {
				t.Fatal(err)
			}
			b := startBroker(t, "--config", filepath.Join(dir, "hooks.yaml"))
			f := fabricAt(t, b.url)
			daemon := f.daemon()
			args := []string{filepath.Join(dir, "agent.py")}
			if c.kill {
				args = append(args, fmt.Sprint(daemon.cmd.Process.Pid))
			}
			got := f.python(args, c.env)
			if strings.Contains(got.Error, c.want.Error) { // and in a sentence, which others hold
				got.Error = c.want.Error
			}
			if c.want.Errors == nil {
				got.Errors = nil
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
			if err := eventually("nothing waits for the agent", func() bool {
				out, err := f.command("broker", "pending", "--agent", "looper", "--json").Output()
				return err == nil && strings.Contains(string(out), `"total":0`)
			}); err != nil {
				t.Error(err)
			}
		})
	}
}

// command is a command in the environment of the fabric's agents.
func (f *exampleFabric) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(f.t.Context(), name, args...)
	cmd.Env = slices.Concat(cleaned(os.Environ()), f.env)
	return cmd
}

// python runs the agent.
func (f *exampleFabric) python(args, env []string) (q pythonQuery) {
	f.t.Helper()
	client, err := filepath.Abs("../../bus/agent/python")
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := f.command("python3", args...)
	cmd.Env = slices.Concat(cmd.Env, env, []string{"PYTHONPATH=" + client, "PYTHONDONTWRITEBYTECODE=1"})
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		err = schema.Unmarshal(out, &q)
	}
	if err != nil {
		f.t.Fatalf("%v\n%s%s", err, out, &stderr)
	}
	return q
}
