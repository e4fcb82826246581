package doctor

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install"
	"github.com/hookfabric/hookfabric/schema"
)

// machine writes files below a folder, those of homes and of the system below root.
func machine(t *testing.T, files map[string]string) install.Machine {
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // one of them is a program
			t.Fatal(err)
		}
	}
	return install.Machine{Root: filepath.Join(dir, "root"), Home: "/home/u", Dir: filepath.Join(dir, "project"), OS: "linux"}
}

// hookFor returns the configuration of one hook, with some words replaced.
func hookFor(shim, event string, change ...string) string {
	text := `{"hooks":{"` + event + `":[{"hooks":[{"type":"command","command":"` + shim + `","args":["hook","--runtime","claude","--event","` + event + `","--timeout","60s"],"timeout":60}]}]}}`
	return strings.NewReplacer(change...).Replace(text)
}

// qwenHTTP is a configuration that `agentshim install qwen --http` wrote in an earlier release.
const qwenHTTP = `{"hooks":{"PreToolUse":[{"hooks":[{"type":"http","url":"http://127.0.0.1:7717/hook/qwen/PreToolUse",
	"headers":{"Authorization":"Bearer $HOOKFABRIC_TOKEN"},"allowedEnvVars":["HOOKFABRIC_TOKEN"],"timeout":60}]}]}}`

// TestWhatIsWrongIsSaid checks that the doctor finds each fault of a configuration, and no fault in a
// valid one.
func TestWhatIsWrongIsSaid(t *testing.T) {
	const link = "/opt/agentshim" // any program, under agentshim's name
	in := func(scope install.Scope, r string, h install.Hook) map[string]string {
		m := machine(t, nil)
		q := install.Request{Runtime: r, Scope: scope, Machine: m, Hook: h, Version: install.Blocking()}
		p, err := q.Install(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for _, c := range p.Changes {
			name, _ := filepath.Rel(filepath.Dir(m.Root), c.Path)
			files[name] = string(c.After)
		}
		return files
	}
	full := func(r string, h install.Hook) map[string]string { return in(install.User, r, h) }
	of := func(scope install.Scope, r string) map[string]string { return in(scope, r, install.Hook{Shim: link}) }
	good := full("claude", install.Hook{Shim: link})
	for _, test := range []struct {
		name, runtime string
		files         map[string]string
		says          string // a problem; empty: no problem
		several       bool   // and others
	}{
		{"nothing is there", "claude", nil, "does not ask the fabric", false},
		{"all is well", "claude", good, "", false},
		{"half of it is missing", "claude", map[string]string{"root/home/u/.claude/settings.json": hookFor(link, "PreToolUse")}, "no hook asks the fabric", false},
		{"the program is gone", "claude", full("claude", install.Hook{Shim: "/nowhere/agentshim"}), "which is not a program", false},
		{"it cannot be read", "claude", map[string]string{"root/home/u/.claude/settings.json": "{"}, "correct the file, and install again", false},
		{"switched off", "claude", with(good, "project/.claude/settings.local.json", `{"disableAllHooks": true}`), "disableAllHooks", false},
		{"managed hooks only", "claude", with(good, "root/etc/claude-code/managed-settings.d/10-it.json", `{"allowManagedHooksOnly": true}`), "allowManagedHooksOnly", false},
		{"the shim waits longer", "claude", replaced(good, `"timeout": 60`, `"timeout": 30`), "waits only 30s", false},
		{"seconds for milliseconds", "gemini", replaced(full("gemini", install.Hook{Shim: link}), "60000", "60"), "milliseconds", false},
		{"over HTTP, which fails open", "qwen", map[string]string{"root/home/u/.qwen/settings.json": qwenHTTP}, "over HTTP, and Qwen Code lets calls pass", true},
		{"over HTTP, of a version that fails open", "claude", replaced(full("claude", install.Hook{Shim: link, URL: "http://127.0.0.1:7717"}), `"onFailure": "block"`, `"once": false`), "over HTTP, and Claude Code lets calls pass", false},
		{"over HTTP", "claude", full("claude", install.Hook{Shim: link, URL: "http://127.0.0.1:7717"}), "", false},
		{"switched off in Gemini", "gemini", with(full("gemini", install.Hook{Shim: link}), "root/etc/gemini-cli/settings.json", `{"hooksConfig":{"enabled":false}}`), "hooksConfig.enabled", false},
		{"switched off in Codex", "codex", with(full("codex", install.Hook{Shim: link}), "root/home/u/.codex/config.toml", "[features]\nhooks = false\n"), "features.hooks", false},
		{"a narrower matcher", "claude", replaced(good, `"matcher": "*"`, `"matcher": "Bash"`), "(matcher)", false},
		{"another way to say all tools", "claude", replaced(good, `"matcher": "*"`, `"matcher": ""`), "", false},
		{"a narrower matcher", "gemini", replaced(full("gemini", install.Hook{Shim: link}), `".*"`, `"run_shell_command"`), "(matcher)", false},
		{"a narrower matcher", "qwen", replaced(full("qwen", install.Hook{Shim: link}), `"hooks": [`, `"matcher": "Read", "hooks": [`), "(matcher)", false},
		{"a narrower matcher", "codex", replaced(full("codex", install.Hook{Shim: link}), `"matcher": "*"`, `"matcher": "apply_patch"`), "(matcher)", false},
		{"a narrower matcher", "cursor", replaced(full("cursor", install.Hook{Shim: link}), `"failClosed": true`, `"failClosed": true, "matcher": "Read"`), "(matcher)", false},
		{"a matcher of its own", "copilot", replaced(full("copilot", install.Hook{Shim: link}), `"type": "command"`, `"type": "command", "matcher": "view"`), "(matcher)", false},
		{"not closed", "cursor", replaced(full("cursor", install.Hook{Shim: link}), `"failClosed": true`, `"failClosed": false`), "(failClosed)", false},
		{"it does not wait", "claude", replaced(good, `"timeout": 60`, `"timeout": 60, "async": true`), "(async)", false},
		{"it waits, and says so", "claude", replaced(good, `"timeout": 60`, `"timeout": 60, "async": false, "statusMessage": "policy"`), "", false},
		{"it does not wait", "qwen", replaced(full("qwen", install.Hook{Shim: link}), `"timeout": 60`, `"timeout": 60, "async": true`), "(async)", false},
		{"only for some calls", "claude", replaced(good, `"timeout": 60`, `"timeout": 60, "if": "Bash(git *)"`), "(if)", false},
		{"only once", "claude", replaced(good, `"timeout": 60`, `"timeout": 60, "once": true`), "(once)", false},
		{"for another event", "claude", replaced(good, "\"PreToolUse\",\n", "\"PostToolUse\",\n"), "(command)", false},
		{"one id for all calls", "codex", replaced(full("codex", install.Hook{Shim: link}), "--timeout 60s", "--timeout 60s --event-id x"), "(command)", false},
		{"flags that do no harm", "codex", replaced(full("codex", install.Hook{Shim: link}), "--timeout 60s", "--timeout 60s --start --socket /run/x.sock"), "", false},
		{"narrow in one file, as it should be in another", "claude", merged(good, "project/.claude/settings.json", replaced(good, `"matcher": "*"`, `"matcher": "Bash"`)), "", false},
		{"a broken plugin", "opencode", replaced(full("opencode", install.Hook{Shim: link}), "refuse(said);", ""), "(its text)", false},
		{"a plugin that is another", "opencode", replaced(full("opencode", install.Hook{Shim: link}), "// The fabric's plugin", "// A plugin"), "is not the plugin", false},
		{"a plugin without its settings", "opencode", replaced(full("opencode", install.Hook{Shim: link}), "const SETTINGS =", "let SETTINGS ="), "(its text)", false},
		{"a plugin as it should be", "opencode", full("opencode", install.Hook{Shim: link, Agent: "a"}), "", false},
		{"a project that is not trusted", "copilot", of(install.Project, "copilot"), "trusted_folders", false},
		{"a plugin that is not named", "opencode", replaced(of(install.Managed, "opencode"), "file:///etc", "file:///other"), "plugin in", false},
		{"managed, and all there", "opencode", of(install.Managed, "opencode"), "", false},
		{"managed, of an older release", "gemini", replaced(of(install.Managed, "gemini"), `"enabled": true`, `"notifications": true`), "(hooksConfig.enabled)", false},
		{"the shim's program is gone", "codex", full("codex", install.Hook{Shim: "/nowhere/agentshim"}), "which is not a program", false},
	} {
		t.Run(test.runtime+": "+test.name, func(t *testing.T) {
			o := &Options{Machine: machine(t, with(test.files, "root"+link, "#!/bin/sh\n")), Runtimes: []string{test.runtime}}
			r := &Runtime{Runtime: test.runtime, Label: install.Label(test.runtime)}
			r.read(o)
			r.examine(t.Context(), o, &fabric{})
			all := strings.Join(r.Problems, "\n")
			if test.says == "" && all != "" || !strings.Contains(all, test.says) || len(r.Problems) > 1 && !test.several {
				t.Errorf("problems: %q; want one, %q", r.Problems, test.says)
			}
		})
	}
}

func with(files map[string]string, name, text string) map[string]string {
	all := maps.Clone(files)
	if all == nil {
		all = map[string]string{}
	}
	all[name] = text
	return all
}

// merged adds a file of another set to files, under the given name.
func merged(files map[string]string, name string, other map[string]string) map[string]string {
	for _, text := range other {
		files = with(files, name, text)
	}
	return files
}

func replaced(files map[string]string, old, now string) map[string]string {
	all := map[string]string{}
	for n, t := range files {
		all[n] = strings.ReplaceAll(t, old, now)
	}
	return all
}

// TestDoubleHooksAreNoted checks that two configurations that ask about the same calls are a hint, and no
// problem.
func TestDoubleHooksAreNoted(t *testing.T) {
	shim := filepath.Join(t.TempDir(), "agentshim")
	if err := os.Symlink("/bin/sh", shim); err != nil {
		t.Fatal(err)
	}
	o := &Options{Machine: machine(t, map[string]string{"root/home/u/.claude/settings.json": hookFor(shim, "PreToolUse"), "project/.claude/settings.json": hookFor(shim, "PreToolUse")})}
	r := &Runtime{Runtime: "claude"}
	r.read(o)
	r.layers(o, r.ours())
	if len(r.Layers) != 2 || !strings.Contains(strings.Join(r.Hints, ""), "2 configurations ask about the same calls") {
		t.Errorf("%d layers, hints %q", len(r.Layers), r.Hints)
	}
}

// TestCallsOfTheDoctorAreCallsOfTheRuntime checks that each runtime's dialect reads the payload as a tool
// call of the doctor's session.
func TestCallsOfTheDoctorAreCallsOfTheRuntime(t *testing.T) {
	for _, name := range install.Names() {
		d, err := dialect.For(name)
		if err != nil {
			t.Fatal(err)
		}
		event, payload := before(name, "doctor-1", "/home/dev/project")
		m, err := dialect.Find(d, event)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		body, err := schema.Marshal(payload)
		if err != nil {
			t.Fatal(err)
		}
		c, err := d.Decode(dialect.Input{Moment: m, Payload: body})
		if err != nil || c.Event.HookType != schema.PreToolUse || c.Event.ToolName != Tool || c.Event.SessionID != "doctor-1" {
			t.Errorf("%s: %+v, %v", name, c.Event, err)
		}
	}
}

func TestWhatCanNotBeSaidIsListed(t *testing.T) {
	r := &Runtime{Runtime: "codex"}
	r.express()
	if all := strings.Join(r.Cannot, ", "); !strings.Contains(all, "ask at PreToolUse") || strings.Contains(all, "deny at PreToolUse") {
		t.Error(all)
	}
}
