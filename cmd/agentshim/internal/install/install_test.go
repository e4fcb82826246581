package install_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/probe"
	"github.com/hookfabric/hookfabric/schema"
)

// TestUninstallingUndoesInstalling checks this for configurations with any content in any formatting.
func TestUninstallingUndoesInstalling(t *testing.T) {
	configs := map[string]string{"claude": "root/home/u/.claude/settings.json", "codex": "root/home/u/.codex/hooks.json",
		"gemini": "root/home/u/.gemini/settings.json", "qwen": "root/home/u/.qwen/settings.json", "cursor": "root/home/u/.cursor/hooks.json",
		"agy": "root/home/u/.gemini/config/hooks.json", "copilot": "root/home/u/.copilot/hooks/agentshim.json"}
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom(install.Names()).Filter(func(n string) bool { return configs[n] != "" }).Draw(rt, "runtime")
		text := anyConfig(rt)
		dir := plant(t, tree{configs[name]: text})
		r := request(dir, name, install.User)
		before := harvest(t, dir)
		p, err := r.Install(t.Context())
		if err != nil { // the generated hooks are invalid
			if diff := cmp.Diff(before, harvest(t, dir)); diff != "" {
				rt.Fatalf("what was refused changed something: %s", diff)
			}
			return
		}
		do(t, p, err)
		var was, is map[string]any
		if err := schema.Unmarshal([]byte(harvest(t, dir)[configs[name]]), &is); err != nil {
			rt.Fatal(err)
		}
		_ = schema.Unmarshal([]byte(text), &was)
		for k, v := range was {
			if k != "hooks" && k != "agentshim" && !cmp.Equal(v, is[k]) {
				rt.Fatalf("installing changed %q: %v", k, cmp.Diff(v, is[k]))
			}
		}
		p, err = r.Uninstall(t.Context())
		do(t, p, err)
		if diff := cmp.Diff(before, harvest(t, dir)); diff != "" {
			rt.Fatalf("uninstalling left something: %s", diff)
		}
	})
}

// anyConfig returns a configuration, mostly with hooks that a runtime could have.
func anyConfig(t *rapid.T) string {
	space := rapid.SampledFrom([]string{"", " ", "\n", "\n  ", "\r\n\t"})
	hook := rapid.SampledFrom([]string{`{"command":"x"}`, `{"matcher":"a","hooks":[{"type":"command","command":"x hook --runtime claude"}]}`,
		`{"hooks":[]}`, `{"bash":"agentshim version"}`, `{"type":"command","command":"agentshim-x hook"}`, `5`, `{}`})
	var parts []string
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"hooks", "model", "agentshim", "version", "ü"}), 0, 4, rapid.ID).Draw(t, "members") {
		value := rapid.SampledFrom([]string{"1", `"x"`, "[1, {}]", `{"a": null}`, "{}"}).Draw(t, "value")
		if name == "hooks" || name == "agentshim" {
			var events []string
			for _, e := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"PreToolUse", "BeforeTool", "preToolUse", "Stop", "Other"}), 0, 3, rapid.ID).Draw(t, "events") {
				hooks := rapid.SliceOfN(hook, 0, 3).Draw(t, "hooks")
				events = append(events, `"`+e+`":`+space.Draw(t, "space")+"["+strings.Join(hooks, ","+space.Draw(t, "space"))+"]")
			}
			value = "{" + space.Draw(t, "space") + strings.Join(events, ","+space.Draw(t, "space")) + "}"
		}
		parts = append(parts, space.Draw(t, "space")+`"`+name+`":`+value)
	}
	return "{" + strings.Join(parts, ",") + space.Draw(t, "space") + "}" + space.Draw(t, "space")
}

func TestWhatCanNotBeReadIsLeftAlone(t *testing.T) {
	for _, test := range []struct{ name, runtime, text, says string }{
		{"broken JSON", "claude", `{"hooks": {`, "not valid JSON"},
		{"comments", "claude", "{\n  // mine\n  \"a\": 1\n}", "comments"},
		{"a list", "gemini", `[]`, "must be a JSON object"},
		{"hooks that are no object", "codex", `{"hooks": []}`, "must be an object"},
		{"an event that is no list", "claude", `{"hooks": {"PreToolUse": {}}}`, "must be a list"},
	} {
		t.Run(test.name, func(t *testing.T) {
			files := tree{"root/home/u/.claude/settings.json": test.text, "root/home/u/.codex/hooks.json": test.text, "root/home/u/.gemini/settings.json": test.text}
			dir := plant(t, files)
			_, err := request(dir, test.runtime, install.User).Install(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), dir) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(files, harvest(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, text := range []string{"a = ", "allow_managed_hooks_only = false", "[features]\nhooks = false", "features = { x = true }\n", "hooks = { PreToolUse = [] }"} {
		files := tree{"root/etc/codex/requirements.toml": text}
		dir := plant(t, files)
		if p, err := request(dir, "codex", install.Managed).Install(t.Context()); err == nil {
			t.Errorf("%q was taken:\n%s", text, p.Diff())
		}
	}
}

// TestFilesOfEachRuntimesOwnSyntax checks that agentshim installs into every file that the runtime can
// read, restores it to the byte, and refuses other files.
func TestFilesOfEachRuntimesOwnSyntax(t *testing.T) {
	const comments, mark = "{\n  // mine\n  \"a\": 1 /* one */\n}\n", "\xef\xbb\xbf{\"a\": 1}"
	for _, test := range []struct {
		runtime, file, text string
		says                string // empty: the installation succeeds
	}{
		{"claude", settings, comments, "Claude Code ignores the whole file"},
		{"claude", settings, mark, ""},
		{"gemini", "root/home/u/.gemini/settings.json", comments, ""},
		{"gemini", "root/home/u/.gemini/settings.json", mark, "save it without"},
		{"qwen", "root/home/u/.qwen/settings.json", comments, ""},
		{"qwen", "root/home/u/.qwen/settings.json", mark, ""},
		{"codex", "root/home/u/.codex/hooks.json", comments, "Codex ignores the whole file"},
		{"codex", "root/home/u/.codex/hooks.json", mark, "save it without"},
		{"copilot", "root/home/u/.copilot/hooks/agentshim.json", comments, "GitHub Copilot ignores the whole file"},
		{"copilot", "root/home/u/.copilot/hooks/agentshim.json", mark, "save it without"},
		{"opencode", "root/etc/opencode/opencode.json", comments, ""},
		{"opencode", "root/etc/opencode/opencode.json", mark, ""},
	} {
		before := tree{test.file: test.text}
		dir := plant(t, before)
		scope := install.User
		if test.runtime == "opencode" {
			scope = install.Managed
		}
		r := request(dir, test.runtime, scope)
		p, err := r.Install(t.Context())
		if test.says != "" {
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%s, %q: error %v", test.runtime, test.text, err)
			}
			continue
		}
		do(t, p, err)
		if strings.Contains(p.Diff(), "mine") {
			t.Errorf("%s: a comment is shown:\n%s", test.runtime, p.Diff())
		}
		if text := harvest(t, dir)[test.file]; strings.Contains(test.text, "mine") != strings.Contains(text, "// mine") ||
			strings.HasPrefix(test.text, "\xef") != strings.HasPrefix(text, "\xef") {
			t.Errorf("%s: it became %s", test.runtime, text)
		}
		p, err = r.Install(t.Context())
		if do(t, p, err) {
			t.Errorf("%s: a second installation changed something", test.runtime)
		}
		p, err = r.Uninstall(t.Context())
		do(t, p, err)
		if diff := cmp.Diff(before, harvest(t, dir)); diff != "" {
			t.Errorf("%s: something stayed behind:\n%s", test.runtime, diff)
		}
	}
}

// TestOthersChangesStay changes something between installing and uninstalling.
func TestOthersChangesStay(t *testing.T) {
	dir := plant(t, tree{"root/home/u/.claude/settings.json": `{"a":1,"hooks":{"Stop":[]}}`})
	r := request(dir, "claude", install.User)
	p, err := r.Install(t.Context())
	do(t, p, err)
	file := filepath.Join(dir, "root/home/u/.claude/settings.json")
	// A user adds a hook to the group with agentshim's, and another setting.
	text := strings.Replace(harvest(t, dir)["root/home/u/.claude/settings.json"], `"hooks": [{"type": "command"`, `"hooks": [{"type":"prompt","prompt":"x"}, {"type": "command"`, 1)
	text = strings.Replace(text, `"a":1`, `"a":2`, 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err = r.Uninstall(t.Context())
	do(t, p, err)
	got := harvest(t, dir)["root/home/u/.claude/settings.json"]
	if want := `{"a":2,"hooks":{"Stop":[{"hooks":[{"type":"prompt","prompt":"x"}]}]}}`; !sameJSON(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return schema.Unmarshal([]byte(a), &x) == nil && schema.Unmarshal([]byte(b), &y) == nil && cmp.Equal(x, y)
}

// TestAFileKeepsWhatItIs checks that an installation follows links and keeps modes.
func TestAFileKeepsWhatItIs(t *testing.T) {
	dir := plant(t, tree{"dotfiles/claude.json": `{"a":1}`})
	link := filepath.Join(dir, "root/home/u/.claude/settings.json")
	if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "dotfiles/claude.json"), link); err != nil {
		t.Fatal(err)
	}
	r := request(dir, "claude", install.User)
	p, err := r.Install(t.Context())
	do(t, p, err)
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(link); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if err := os.Remove(filepath.Join(dir, "dotfiles/claude.json")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Install(t.Context()); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("a link to nothing: %v", err)
	}
}

func TestAFileThatChangesMeanwhileIsLeftAlone(t *testing.T) {
	dir := plant(t, tree{"root/home/u/.claude/settings.json": `{"a":1}`})
	p, err := request(dir, "claude", install.User).Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "root/home/u/.claude/settings.json")
	if err := os.WriteFile(file, []byte(`{"a":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Apply(time.Now()); err == nil {
		t.Error("somebody's change was written over")
	}
	if text := harvest(t, dir)["root/home/u/.claude/settings.json"]; text != `{"a":2}` {
		t.Error(text)
	}
}

func TestWhatWouldNotWorkIsRefused(t *testing.T) {
	for _, test := range []struct {
		name, runtime string
		scope         install.Scope
		hook          install.Hook
		says          string
	}{
		{"an unknown runtime", "vim", install.User, install.Hook{}, "unknown runtime"},
		{"no managed configuration", "qwen", install.Managed, install.Hook{}, "no managed"},
		{"a relative path", "claude", install.User, install.Hook{Shim: "agentshim"}, "absolute"},
		{"a password", "claude", install.User, install.Hook{NATS: "nats://u:secret@bus:4222"}, "--creds"},
		{"a password in a list", "claude", install.User, install.Hook{NATS: "nats://a:4222,nats://u:secret@b:4222"}, "--creds"},
		{"a password without a scheme", "claude", install.User, install.Hook{NATS: "u:secret@b:4222"}, "--creds"},
		{"a password for the daemon", "claude", install.User, install.Hook{URL: "http://u:secret@127.0.0.1:7717"}, "--http"},
		{"a URL by which hooks would not be known again", "claude", install.User, install.Hook{URL: "http://127.0.0.1:7717/x"}, "--http"},
		{"another machine's daemon", "claude", install.User, install.Hook{URL: "http://192.0.2.1:7717"}, "--http"},
		{"credentials by a relative path", "claude", install.User, install.Hook{Creds: "bus.creds"}, "--creds"},
		{"HTTP where there is none", "codex", install.User, install.Hook{URL: "http://127.0.0.1:7717"}, "HTTP hooks of"},
		{"HTTP that fails open", "qwen", install.User, install.Hook{URL: "http://127.0.0.1:7717"}, "let calls pass when the daemon does not answer"},
		{"no time", "claude", install.User, install.Hook{Timeout: time.Millisecond}, "--timeout"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := request(t.TempDir(), test.runtime, test.scope)
			if test.hook.Shim == "" {
				test.hook.Shim = "/opt/agentshim"
			}
			r.Hook = test.hook
			_, err := r.Install(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "secret") {
				t.Errorf("error %v", err)
			}
		})
	}
}

// TestOldVersionsAreToldNothingNew checks that an installation writes no setting that the version rejects.
func TestOldVersionsAreToldNothingNew(t *testing.T) {
	for _, test := range []struct {
		version probe.Version
		blocks  bool
	}{{probe.Version{}, false}, {probe.Version{2, 1, 294}, false}, {probe.Version{2, 1, 295}, true}, {probe.Version{3, 0, 0}, true}} {
		r := request(t.TempDir(), "claude", install.User)
		r.Version = test.version
		p, err := r.Install(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := bytes.Contains(p.Changes[0].After, []byte("onFailure")); got != test.blocks {
			t.Errorf("version %s: onFailure is there: %v", test.version, got)
		}
		if noted := strings.Contains(strings.Join(p.Notes, " "), "2.1.295"); noted == test.blocks {
			t.Errorf("version %s: %q", test.version, p.Notes)
		}
		r.Hook.URL = "http://127.0.0.1:7717" // HTTP hooks that fail let the call pass
		if _, err := r.Install(t.Context()); (err == nil) != test.blocks || err != nil && !strings.Contains(err.Error(), "--runtime-version") {
			t.Errorf("version %s over HTTP: %v", test.version, err)
		}
	}
}

// TestOverHTTP checks that no configuration contains the token, and that an event that takes only
// commands gets one.
func TestOverHTTP(t *testing.T) {
	r := request(t.TempDir(), "claude", install.User)
	r.Hook.URL = "http://127.0.0.1:7717/"
	p, err := r.Install(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := string(p.Changes[0].After)
	for _, want := range []string{`"url": "http://127.0.0.1:7717/hook/claude/PreToolUse"`, `"Authorization": "Bearer $HOOKFABRIC_TOKEN"`, `"Hook-Left": "60s"`, `"--event",` + "\n              \"SessionStart\""} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
	if strings.Contains(text, "/hook/claude/SessionStart") {
		t.Error("SessionStart asks over HTTP")
	}
	do(t, p, err)
	if p, err = r.Install(t.Context()); do(t, p, err) {
		t.Error("a second installation changed something")
	}
}

// shells returns the shells of this machine to which a runtime may pass a command line.
func shells(t *testing.T) (all []string) {
	for _, name := range []string{"sh", "bash", "dash", "zsh", "fish"} {
		if path, err := exec.LookPath(name); err == nil {
			all = append(all, path)
		}
	}
	if len(all) == 0 {
		t.Skip("there is no shell: that command lines are right is not tested")
	}
	return all
}

// TestAShellTakesEveryWordAsItIs runs the command lines in these shells.
func TestAShellTakesEveryWordAsItIs(t *testing.T) {
	for _, name := range []string{"agentshim", "my tools/agentshim", `it's "here"/$HOME/agentshim`, "a\\b;c/agentshim;x&|<>()*?[]{}~#!", "ü\t/agentshim"} {
		shim := filepath.Join(plant(t, tree{name: "#!/bin/sh\nprintf '%s\\n' \"$0\" \"$@\"\n"}), name)
		if err := os.Chmod(shim, 0o700); err != nil { //nolint:gosec // it is a program
			t.Fatal(err)
		}
		for _, scope := range []install.Scope{install.User, install.Project} {
			r := request(t.TempDir(), "codex", scope)
			r.Hook.Shim, r.Hook.Agent = shim, "a b'c"
			p, err := r.Install(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			do(t, p, err)
			found, err := install.Find(r.Machine, "codex", scope)
			if err != nil || len(found.Hooks) == 0 {
				t.Fatalf("%s is not found again: %+v, %v", shim, found, err)
			}
			for _, h := range found.Hooks {
				if !install.Ours(h.Line, "codex") {
					t.Errorf("%s is not ours", h.Line)
				}
				if h.Event != "PreToolUse" && h.Event != "Stop" {
					continue // the others are made like one of these
				}
				for _, sh := range shells(t) {
					out, err := exec.CommandContext(t.Context(), sh, "-c", h.LineWith("--more", "$x")).Output()
					if want := strings.Join(h.Command, "\n") + "\n--more\n$x\n"; err != nil || string(out) != want || h.Command[0] != shim {
						t.Errorf("%s: %s reads %q, we %q: %v", h.Line, sh, out, h.Command, err)
					}
				}
			}
		}
	}
}

// TestAMissingProgramRefusesCalls checks that a call does not run if its hook cannot start and the runtime
// would let it pass. It also checks that a project's hooks name the missing program.
func TestAMissingProgramRefusesCalls(t *testing.T) {
	gates := map[string]string{"claude": "PreToolUse", "codex": "PreToolUse", "gemini": "BeforeTool", "qwen": "PreToolUse",
		"cursor": "preToolUse", "copilot": "preToolUse", "agy": "PreToolUse"}
	for name, gate := range gates {
		for _, scope := range install.Scopes(name) {
			r := request(t.TempDir(), name, scope)
			r.Hook.Shim = filepath.Join(t.TempDir(), "it's gone", "agentshim")
			if name == "claude" && scope == install.User {
				r.Version = probe.Version{2, 1, 294} // that version has no onFailure
			}
			p, err := r.Install(t.Context())
			do(t, p, err)
			found, err := install.Find(r.Machine, name, scope)
			if err != nil {
				t.Fatal(err)
			}
			open := name == "codex" || name == "qwen" || name == "claude" && scope == install.User
			if scope != install.Project && !open {
				continue // the runtime itself refuses the call
			}
			for _, h := range found.Hooks {
				for _, sh := range shells(t) {
					if h.Event != gate && (h.Gate || scope != install.Project || !strings.EqualFold(strings.TrimPrefix(h.Event, "agent"), "stop")) {
						continue // the others are made like one of these
					}
					cmd := exec.CommandContext(t.Context(), sh, "-c", h.Line)
					var stderr bytes.Buffer
					cmd.Stderr = &stderr
					_ = cmd.Run() // the exit code is read below
					code, says := cmd.ProcessState.ExitCode(), stderr.String()
					if h.Gate && (code != 2 || !strings.Contains(says, "agentshim at "+r.Hook.Shim)) || !h.Gate && (code != 0 || says != "") {
						t.Errorf("%s %s: %s: %s ends with %d and says %q", name, scope, h.Line, sh, code, says)
					}
				}
			}
			if i := slices.IndexFunc(found.Hooks, func(h install.Owned) bool { return h.Event == gate }); i < 0 || !found.Hooks[i].Denies {
				t.Errorf("%s %s: %s is not known to refuse calls", name, scope, gate)
			}
		}
	}
}

// TestEveryEventIsOneOfTheDialect checks that agentshim installs no hook at an event that its dialect
// does not know or does not have judged.
func TestEveryEventIsOneOfTheDialect(t *testing.T) {
	for _, name := range install.Names() {
		d, err := dialect.For(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if name == "opencode" {
			continue // the plugin's own test covers its events
		}
		r := request(t.TempDir(), name, install.User)
		r.Hook.Approve, r.Hook.Models = true, true
		p, err := r.Install(t.Context())
		do(t, p, err)
		found, err := install.Find(r.Machine, name, install.User)
		if err != nil || len(found.Hooks) < 4 {
			t.Errorf("%s: %d hooks, %v", name, len(found.Hooks), err)
		}
		for _, h := range found.Hooks {
			if m, err := dialect.Find(d, h.Event); err != nil || m.Name != h.Event || m.Event == "" {
				t.Errorf("%s: %s is %+v, %v", name, h.Event, m.Event, err)
			}
		}
	}
}

// TestWhatAHookIsToldIsFoundAgain checks that Find reads the flags of a hook from the configuration of
// each runtime.
func TestWhatAHookIsToldIsFoundAgain(t *testing.T) {
	for _, name := range install.Names() {
		r := request(t.TempDir(), name, install.User)
		r.Hook.Agent, r.Hook.Creds, r.Hook.NATS, r.Hook.State = "scout", "/etc/scout.creds", "nats://127.0.0.1:4333", "/var/lib/scout"
		p, err := r.Install(t.Context())
		do(t, p, err)
		found, err := install.Find(r.Machine, name, install.User)
		if err != nil || len(found.Hooks) == 0 {
			t.Fatalf("%s: %d hooks, %v", name, len(found.Hooks), err)
		}
		for _, h := range found.Hooks {
			for flag, want := range map[string]string{"--agent": "scout", "--creds": "/etc/scout.creds", "--nats": "nats://127.0.0.1:4333", "--state": "/var/lib/scout"} {
				if got := h.Flag(flag); got != want {
					t.Errorf("%s at %s: %s is %q, want %q", name, h.Event, flag, got, want)
				}
			}
		}
	}
}
