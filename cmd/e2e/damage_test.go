package e2e_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

// TestADamagedDataDirectoryStartsNoBroker, whichever stream is damaged, and whether the
// broker was stopped or killed: it would thaw what is frozen, or have no hooks any more.
func TestADamagedDataDirectoryStartsNoBroker(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]syscall.Signal{"stopped": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			data := lived(t, end)
			blocks, err := filepath.Glob(filepath.Join(data, "nats", "jetstream", "*", "streams", "*", "msgs", "*.blk"))
			if err != nil || len(blocks) < 5 {
				t.Fatalf("the data directory has the blocks %q: %v", blocks, err)
			}
			for _, block := range blocks {
				whole, err := os.ReadFile(block)
				if err != nil {
					t.Fatal(err)
				}
				if len(whole) == 0 {
					continue
				}
				for damage, do := range map[string]func() error{
					"cut off": func() error { return os.WriteFile(block, whole[:len(whole)/2], 0o600) },
					"zeroed":  func() error { return os.WriteFile(block, make([]byte, len(whole)), 0o600) },
					"removed": func() error { return os.Remove(block) },
				} {
					if err := do(); err != nil {
						t.Fatal(err)
					}
					stream := filepath.Dir(filepath.Dir(block))
					p := start(t, "broker", append([]string{"--data", data}, anyPort...)...)
					if code, err := p.wait(); err != nil || code != 1 || !strings.Contains(p.said.String(), stream+" is damaged: ") {
						t.Errorf("with a block of %s %s the broker ended with %d, %v:\n%s", filepath.Base(stream), damage, code, err, p.said)
					}
					if err := os.WriteFile(block, whole, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			indexes, err := filepath.Glob(filepath.Join(data, "nats", "jetstream", "*", "streams", "*", "msgs", "index.db"))
			for _, index := range indexes {
				err = errors.Join(err, os.Remove(index))
			}
			if err != nil {
				t.Fatal(err)
			}
			b := startBroker(t, "--data", data)
			for agent, want := range map[string]schema.Decision{"tester": schema.Deny, "other": schema.Deny} {
				v, err := dial(t, b.url).Ask(t.Context(), &schema.Event{HookType: schema.PreToolUse, AgentID: agent, SessionID: "s", ToolName: "Read"})
				if err != nil || v.Decision != want {
					t.Errorf("as it was, %s gets %+v, %v", agent, v, err)
				}
			}
		})
	}
}

// lived is a data directory in which a broker with a hook kept an item and a freeze when it ended.
func lived(t *testing.T, end syscall.Signal) string {
	t.Helper()
	data := t.TempDir()
	config := write(t, t.TempDir(), "hooks.yaml", "presets: []\nhooks:\n  PreToolUse:\n    - {type: builtin, handler: deny, fail_closed: true}\n")
	b := startBroker(t, "--config", config, "--data", data)
	for _, args := range [][]string{
		{"inject", "--agent", "tester", "something"}, {"freeze", "--agent", "tester", "--reason", "looked into"}, {"round", "start", "--agent", "tester"},
	} {
		p := start(t, "broker", append(args[:1:1], append([]string{"--nats", b.url}, args[1:]...)...)...)
		if code, err := p.wait(); err != nil || code != 0 {
			t.Fatalf("%q ended with %d, %v:\n%s", args, code, err, p.said)
		}
	}
	if _, err := ask(t.Context(), dial(t, b.url), "Bash"); err != nil {
		t.Fatal(err)
	}
	// The broker writes down once a second how far its streams reach. The records of the freeze and of the call are
	// one message or two.
	recorded := regexp.MustCompile("(?m)^hook_record [12]$")
	noted := filepath.Join(data, "nats", "jetstream", "$G", "lasts")
	if err := eventually("all streams are written down", func() bool {
		said, _ := os.ReadFile(noted)
		folders, _ := filepath.Glob(filepath.Join(filepath.Dir(noted), "streams", "*"))
		return len(folders) > 0 && strings.Count(string(said), "\n") == len(folders) && strings.Contains(string(said), "KV_hook_freezes 2\n") && recorded.Match(said)
	}); err != nil {
		said, _ := os.ReadFile(noted)
		t.Fatalf("%v:\n%s", err, said)
	}
	b.must(t, end)
	if _, err := b.wait(); err != nil {
		t.Fatal(err)
	}
	return data
}
