package doctor

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/dialect"
	"github.com/hookfabric/hookfabric/cmd/agentshim/install"
	"github.com/hookfabric/hookfabric/schema"
)

// machine has files below a folder: those of homes and of the system below root.
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

// hookFor is the configuration of one hook, with its words changed.
func hookFor(shim, event string, change ...string) string {
	text := `{"hooks":{"` + event + `":[{"hooks":[{"type":"command","command":"` + shim + `","args":["hook","--runtime","claude","--event","` + event + `","--timeout","60s"],"timeout":60}]}]}}`
	return strings.NewReplacer(change...).Replace(text)
}

// TestWhatIsWrongIsSaid holds that each fault of a configuration is found, and
// that nothing is found where there is none.
func TestWhatIsWrongIsSaid(t *testing.T) {
	const link = "/opt/agentshim" // any program, under our name
	full := func(r string, h install.Hook) map[string]string {
		m := machine(t, nil)
		q := install.Request{Runtime: r, Scope: install.User, Machine: m, Hook: h}
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
	good := full("claude", install.Hook{Shim: link})
	for _, test := range []struct {
		name, runtime string
		files         map[string]string
		says          string // a problem; empty: there is none
	}{
		{"nothing is there", "claude", nil, "does not ask the fabric"},
		{"all is well", "claude", good, ""},
		{"half of it is missing", "claude", map[string]string{"root/home/u/.claude/settings.json": hookFor(link, "PreToolUse")}, "nobody is asked"},
		{"the program is gone", "claude", full("claude", install.Hook{Shim: "/nowhere/agentshim"}), "which is no program"},
		{"it can not be read", "claude", map[string]string{"root/home/u/.claude/settings.json": "{"}, "can not be read"},
		{"switched off", "claude", with(good, "project/.claude/settings.local.json", `{"disableAllHooks": true}`), "disableAllHooks"},
		{"managed hooks only", "claude", with(good, "root/etc/claude-code/managed-settings.d/10-it.json", `{"allowManagedHooksOnly": true}`), "allowManagedHooksOnly"},
		{"the shim waits longer", "claude", replaced(good, `"timeout": 60`, `"timeout": 30`), "waits only 30s"},
		{"seconds for milliseconds", "gemini", replaced(full("gemini", install.Hook{Shim: link}), "60000", "60"), "milliseconds"},
		{"switched off in Gemini", "gemini", with(full("gemini", install.Hook{Shim: link}), "root/etc/gemini-cli/settings.json", `{"hooksConfig":{"enabled":false}}`), "hooksConfig.enabled"},
		{"switched off in Codex", "codex", with(full("codex", install.Hook{Shim: link}), "root/home/u/.codex/config.toml", "[features]\nhooks = false\n"), "features.hooks"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := &Options{Machine: machine(t, with(test.files, "root"+link, "#!/bin/sh\n"))}
			r := &Runtime{Runtime: test.runtime, Label: install.Label(test.runtime)}
			r.read(o)
			if why := install.SwitchedOff(o.Machine, test.runtime); why != "" {
				r.problem(why)
			}
			if ours := r.ours(); len(ours) == 0 {
				r.examine(t.Context(), o, &fabric{})
			} else {
				r.layers(o, ours)
			}
			all := strings.Join(r.Problems, "\n")
			if test.says == "" && all != "" || !strings.Contains(all, test.says) {
				t.Errorf("problems: %q; want %q", r.Problems, test.says)
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

func replaced(files map[string]string, old, now string) map[string]string {
	all := map[string]string{}
	for n, t := range files {
		all[n] = strings.ReplaceAll(t, old, now)
	}
	return all
}

// TestDoubleHooksAreNoted holds that two configurations that ask about the same
// calls are no problem, and that it is said.
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

// TestCallsOfTheDoctorAreCallsOfTheRuntime holds that each runtime's dialect reads
// the payload as a tool call of the doctor's session.
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
