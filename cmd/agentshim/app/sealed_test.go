package app

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A hook that is installed for all agents of a machine ignores all settings of an agent or
// of its project: another fabric, another policy for an unreachable fabric, and the agent's
// own daemon.
func TestAManagedHookIsNotTalkedOutOfItsFabric(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	requests := startTestDaemon(t, filepath.Join(dir, "hookfabric", "agentshim.sock"), answering(map[string]string{"exit": "0"}, "yes"))
	env := []string{programVar + "=1", "HOME=" + dir, "XDG_RUNTIME_DIR=" + dir, "HOOKFABRIC_NATS=nats://127.0.0.1:1", "HOOKFABRIC_UNREACHABLE=allow",
		"HOOKFABRIC_SOCKET=" + filepath.Join(dir, "hookfabric", "agentshim.sock"), "HOOKFABRIC_MANAGED=false", "HOOKFABRIC_AGENT=mallory"}
	run := func(args ...string) (string, string) {
		c := exec.Command(os.Args[0])
		c.Args = append([]string{"agentshim", "hook", "--runtime", "generic"}, args...)
		c.Env = env
		c.Stdin = strings.NewReader(`{"hook_type":"PreToolUse","tool_name":"Bash"}`)
		var stdout, stderr bytes.Buffer
		c.Stdout, c.Stderr = &stdout, &stderr
		if err := c.Run(); err != nil {
			t.Fatalf("%v: %s", err, &stderr)
		}
		return stdout.String(), stderr.String()
	}
	if out, stderr := run("--managed", "--nats", w.url); !strings.Contains(out, `"continue"`) || stderr != "" {
		t.Errorf("with the fabric named: %s%s", out, stderr)
	}
	if out, stderr := run("--managed", "--nats", "nats://127.0.0.1:2"); !strings.Contains(out, `"deny"`) {
		t.Errorf("with one that is not there: %s%s", out, stderr)
	}
	select {
	case r := <-requests:
		t.Errorf("the hook asked a daemon that any process could have started: %+v", r)
	default:
	}
	if got := w.last().Agent; got != "mallory" {
		t.Errorf("who the agent is may be said in the environment, and is %q", got)
	}
}
