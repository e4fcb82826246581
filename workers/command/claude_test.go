package command

import (
	"os/exec"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
	"github.com/hookfabric/hookfabric/workers"
	"github.com/hookfabric/hookfabric/workers/runnertest"
)

// handleWith runs one hook for one event with its own runner.
func handleWith(t *testing.T, h schema.Hook, e *schema.Event) (schema.Result, error) {
	t.Helper()
	r := New(Options{})
	t.Cleanup(func() { _ = r.Close() })
	handler, err := r.Load(h, workers.Site{Dirs: testdata(t)})
	if err != nil {
		t.Fatal(err)
	}
	return handler.Handle(t.Context(), e)
}

func expect(t *testing.T, h schema.Hook, e *schema.Event, want schema.Result) {
	t.Helper()
	got, err := handleWith(t, h, e)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the answer differs (-want +got):\n%s", diff)
	}
}

func harmless() *schema.Event {
	e := runnertest.Event("Bash")
	e.ToolInput = jsontext.Value(`{"command":"ls"}`)
	return e
}

func TestAClaudeCodeShellScriptRunsUnchanged(t *testing.T) {
	hook := hookOf("claude-guard.sh")
	expect(t, hook, runnertest.Event("Bash"), schema.Denied("destructive command in /home/dev/project: rm -rf /tmp/x"))
	expect(t, hook, harmless(), schema.Result{})
}

func TestAClaudeCodePythonScriptRunsUnchanged(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("THERE IS NO python3 HERE: that Claude Code's Python scripts run unchanged was NOT tested")
	}
	hook := hookOf("claude-guard.py")
	expect(t, hook, runnertest.Event("Bash"), schema.Denied("Blocked: dangerous rm command"))
	expect(t, hook, harmless(), schema.Result{})
	post := harmless()
	post.HookType, post.ToolOutput = schema.PostToolUse, jsontext.Value(`{"stdout":"the secret","stderr":""}`)
	expect(t, hook, post, schema.Denied("the output of Bash holds a secret"))
}
