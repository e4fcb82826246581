package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTextsReachAnAgentThroughAFile has one process write texts of the queue into a folder, and
// another process deliver them after tool calls.
func TestTextsReachAnAgentThroughAFile(t *testing.T) {
	t.Parallel()
	b := startBroker(t)
	dir := filepath.Join(t.TempDir(), "channel")
	inject := func(text string, more ...string) {
		t.Helper()
		args := append([]string{"inject", "--nats", b.url, "--agent", "codex1"}, more...)
		c := exec.CommandContext(t.Context(), "broker", append(args, text)...)
		c.Env = cleaned(os.Environ())
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	inject("first words")
	inject("second words", "--matcher", "other")
	drain := func() *process {
		return start(t, "agentshim", "drain", "--agent", "codex1", "--channel", dir, "--nats", b.url, "--state", t.TempDir())
	}
	lies := func(text string) {
		t.Helper()
		err := eventually(text+" lie there", func() bool {
			data, err := os.ReadFile(filepath.Join(dir, "hook_post_tool_use.json"))
			return err == nil && strings.Contains(string(data), text)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	writer := drain()
	lies("first words")
	c := mcpOver(t, nil, append(through(b.url, "--channel", dir), "--", "mcpserver")...)
	if r := c.call("echo", `{"m":"x"}`); strings.Count(r, "first words") != 1 || !strings.Contains(r, `"text":"x"`) {
		t.Errorf("%s", r)
	}
	lies("second words")
	if r := c.call("echo", `{"m":"x"}`); strings.Contains(r, "words") {
		t.Errorf("what is for another tool: %s", r)
	}
	writer.kill() // the next one goes on where it died
	writer = drain()
	lies("second words")
	if r := c.call("other", `{"m":"x"}`); strings.Count(r, "second words") != 1 {
		t.Errorf("%s", r)
	}
	inject("words for another tool", "--matcher", "Write|Edit")
	lies("words for another tool")
	inject("words in between") // does not wait behind them
	lies("words in between")
	if r := c.call("echo", `{"m":"x"}`); strings.Count(r, "words in between") != 1 {
		t.Errorf("%s", r)
	}
	inject("third words")
	lies("third words")
	writer.must(t, syscall.SIGTERM)
	if code, err := writer.wait(); err != nil || code != 0 {
		t.Errorf("exit code %d, %v", code, err)
	}
	if r := c.call("other", `{"m":"x"}`); strings.Contains(r, "words") {
		t.Errorf("what was taken back: %s", r)
	}
	// Texts that the agent did not get in its turn come between this turn and the next.
	begun := time.Now()
	rest := exec.CommandContext(t.Context(), "agentshim", "drain", "--agent", "codex1", "--nats", b.url, "--state", t.TempDir())
	rest.Env = cleaned(os.Environ())
	out, err := rest.Output()
	if err != nil || !strings.Contains(string(out), "third words") || !strings.Contains(string(out), "words for another tool") || time.Since(begun) > 10*time.Second {
		t.Errorf("after %s: %q, %v", time.Since(begun), out, err)
	}
}
