package install_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install"
)

const settings = "root/home/u/.claude/settings.json"

// TestWhatIsShownHoldsNoSecrets checks that a plan is safe for a log: it shows only the names of entries
// that are not agentshim's.
func TestWhatIsShownHoldsNoSecrets(t *testing.T) {
	const mixed = `{"hooks": {"PreToolUse": [{"matcher": "s3cret", "hooks": [{"type": "command", "command": "curl s3cret"},
{"type": "command", "command": "/old/agentshim hook --runtime claude --event PreToolUse --nats nats://u:s3cret@bus"}]}]}}`
	for _, test := range []struct {
		name, runtime, file, text string
		scope                     install.Scope
	}{
		{"on many lines", "claude", settings, "{\n  \"env\": {\n    \"KEY\": \"s3cret\"\n  },\n  \"apiKeyHelper\": \"s3cret\"\n}\n", install.User},
		{"on one line", "claude", settings, `{"env": {"KEY": "s3cret"}, "list": ["s3cret", {"x": "s3cret"}]}`, install.User},
		{"beside hooks of ours", "claude", settings, mixed, install.User},
		{"in TOML", "codex", "root/etc/codex/requirements.toml", "key = 's3cret' # s3cret\n[env]\nTOKEN = \"s3cret\"\nx = \"\"\"\ns3cret\n[s3cret]x\n\"\"\"\n", install.Managed},
		{"of OpenCode", "opencode", "root/etc/opencode/opencode.json", `{"plugin": ["s3cret"], "key": "s3cret"}`, install.Managed},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := plant(t, tree{test.file: test.text})
			r := request(dir, test.runtime, test.scope)
			p, err := r.Install(t.Context())
			if err != nil || strings.Contains(p.Diff(), "s3cret") || !strings.Contains(p.Diff(), "/opt/agentshim/bin/agentshim") {
				t.Errorf("%v\n%s", err, p.Diff())
			}
			do(t, p, err)
			p, err = r.Uninstall(t.Context())
			if err != nil || strings.Contains(p.Diff(), "s3cret") || !strings.Contains(p.Diff(), "agentshim") {
				t.Errorf("%v\n%s", err, p.Diff())
			}
		})
	}
}

// TestCopiesAreWholeAndApart checks that no copy overwrites one with another content, even in the same
// second.
func TestCopiesAreWholeAndApart(t *testing.T) {
	dir := plant(t, tree{settings: `{"a":1}`})
	file := filepath.Join(dir, settings)
	for _, text := range []string{`{"a":1}`, `{"a":2}`, `{"a":1}`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := request(dir, "claude", install.User).Install(t.Context())
		do(t, p, err)
	}
	kept, err := filepath.Glob(file + ".before-agentshim-*")
	if err != nil || len(kept) != 2 {
		t.Fatalf("%q, %v", kept, err)
	}
	for i, want := range []string{`{"a":1}`, `{"a":2}`} {
		if text, err := os.ReadFile(kept[i]); err != nil || string(text) != want {
			t.Errorf("%s is %s, %v", kept[i], text, err)
		}
	}
}

// TestOtherNamesOfAFileAreSpokenOf checks that Apply reports hard links, which end when it replaces a
// file.
func TestOtherNamesOfAFileAreSpokenOf(t *testing.T) {
	dir := plant(t, tree{settings: `{"a":1}`})
	other := filepath.Join(dir, "dotfiles.json")
	if err := os.Link(filepath.Join(dir, settings), other); err != nil {
		t.Skip("no hard links here, so that they are spoken of is not tested: ", err)
	}
	p, err := request(dir, "claude", install.User).Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	said, err := p.Apply(time.Now())
	if err != nil || !strings.Contains(strings.Join(said, ""), "hard links") {
		t.Errorf("%q, %v", said, err)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != `{"a":1}` {
		t.Errorf("%s, %v", text, err)
	}
}

// TestLitterIsTakenAway checks that an installation removes the files of a killed one, and keeps those
// of a running one.
func TestLitterIsTakenAway(t *testing.T) {
	dir := plant(t, tree{settings: `{"a":1}`, "root/home/u/.claude/.agentshim-1.tmp": "old", "root/home/u/.claude/.agentshim-2.tmp": "new", "root/home/u/.claude/agentshim-3.tmp": "mine"})
	long := time.Now().Add(-2 * time.Hour)
	for _, name := range []string{".agentshim-1.tmp", "agentshim-3.tmp"} {
		if err := os.Chtimes(filepath.Join(dir, "root/home/u/.claude", name), long, long); err != nil {
			t.Fatal(err)
		}
	}
	p, err := request(dir, "claude", install.User).Install(t.Context())
	do(t, p, err)
	files := harvest(t, dir)
	for name, there := range map[string]bool{".agentshim-1.tmp": false, ".agentshim-2.tmp": true, "agentshim-3.tmp": true} {
		if _, is := files["root/home/u/.claude/"+name]; is != there {
			t.Errorf("%s is there: %v", name, is)
		}
	}
}
