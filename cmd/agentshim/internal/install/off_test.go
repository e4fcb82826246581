package install_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install"
)

// TestASwitchCountsWhereItsRuntimeReadsIt installs hooks beside settings that switch hooks off or only
// look like it. The expected results come from the released clients.
func TestASwitchCountsWhereItsRuntimeReadsIt(t *testing.T) {
	const (
		geminiUser, geminiProject = "root/home/u/.gemini/settings.json", "project/.gemini/settings.json"
		claudeUser, claudeProject = "root/home/u/.claude/settings.json", "project/.claude/settings.json"
		claudeManaged             = "root/etc/claude-code/managed-settings.d/60-other.json"
	)
	command := "/opt/agentshim/bin/agentshim hook --runtime gemini --event BeforeTool --timeout 60s --managed"
	for _, test := range []struct {
		name, runtime string
		scope         install.Scope
		files         tree
		env           map[string]string
		says          string // empty: hooks run
	}{
		{"nothing", "claude", install.User, nil, nil, ""},
		{"the user's own", "claude", install.User, tree{claudeProject: `{"disableAllHooks": true}`}, nil, "disableAllHooks"},
		{"a project that takes it back", "claude", install.User, tree{claudeUser: `{"disableAllHooks": true}`, claudeProject: `{"disableAllHooks": false}`}, nil, ""},
		{"the user's, of managed hooks", "claude", install.Managed, tree{claudeUser: `{"disableAllHooks": true}`}, nil, ""},
		{"a managed one", "claude", install.Managed, tree{claudeManaged: `{"disableAllHooks": true}`}, nil, "60-other.json"},
		{"managed hooks only, where it is managed", "claude", install.User, tree{claudeManaged: `{"allowManagedHooksOnly": true}`}, nil, "allowManagedHooksOnly"},
		{"managed hooks only, where it is not", "claude", install.User, tree{claudeUser: `{"allowManagedHooksOnly": true}`}, nil, ""},
		{"another runtime's word", "claude", install.User, tree{claudeUser: `{"hooksConfig": {"enabled": false}}`}, nil, ""},

		{"the user's", "gemini", install.User, tree{geminiProject: `{"hooksConfig": {"enabled": false}}`}, nil, "hooksConfig.enabled"},
		{"the user's, of managed hooks", "gemini", install.Managed, tree{geminiUser: `{"hooksConfig": {"enabled": false, "disabled": ["agentshim"]}}`}, nil, ""},
		{"by the managed hook's command", "gemini", install.Managed, tree{geminiProject: `{"hooksConfig": {"disabled": ["other", "` + command + `"]}}`}, nil, "hooksConfig.disabled"},
		{"by the user's hook's name", "gemini", install.User, tree{geminiProject: `{"hooksConfig": {"disabled": ["agentshim"]}}`}, nil, "hooksConfig.disabled"},
		{"another runtime's word", "gemini", install.User, tree{geminiProject: `{"disableAllHooks": true}`}, nil, ""},
		{"another file for the managed one", "gemini", install.Managed, nil, map[string]string{"GEMINI_CLI_SYSTEM_SETTINGS_PATH": "/tmp/mine.json"}, "GEMINI_CLI_SYSTEM_SETTINGS_PATH"},
		{"another file, of user's hooks", "gemini", install.User, nil, map[string]string{"GEMINI_CLI_SYSTEM_SETTINGS_PATH": "/tmp/mine.json"}, ""},

		{"the user's", "codex", install.User, tree{"root/home/u/.codex/config.toml": "limit = inf\n[features]\nhooks = false\n"}, nil, "features.hooks"},
		{"the user's, of managed hooks", "codex", install.Managed, tree{"root/home/u/.codex/config.toml": "[features]\nhooks = false\n"}, nil, ""},
		{"the user's", "qwen", install.User, tree{"project/.qwen/settings.json": `{"disableAllHooks": true}`}, nil, "disableAllHooks"},
		{"another runtime's word", "qwen", install.User, tree{"project/.qwen/settings.json": `{"hooksConfig": {"enabled": false}}`}, nil, ""},
		{"the file's own", "copilot", install.User, tree{"root/home/u/.copilot/hooks/agentshim.json": `{"disableAllHooks": true}`}, nil, "disableAllHooks"},
		{"that of settings", "copilot", install.User, tree{"root/home/u/.copilot/settings.json": `{"disableAllHooks": true}`}, nil, ""},
		{"the user's, of managed hooks", "copilot", install.Managed, tree{"root/home/u/.copilot/hooks/agentshim.json": `{"disableAllHooks": true}`}, nil, ""},

		{"no plugins", "opencode", install.Managed, nil, map[string]string{"OPENCODE_PURE": "1"}, "--pure"},
		{"another managed folder", "opencode", install.Managed, nil, map[string]string{"OPENCODE_TEST_MANAGED_CONFIG_DIR": "/tmp"}, "OPENCODE_TEST_MANAGED_CONFIG_DIR"},
	} {
		t.Run(test.runtime+": "+test.name, func(t *testing.T) {
			dir := plant(t, test.files)
			r := request(dir, test.runtime, test.scope)
			r.Machine.Env = func(name string) string { return test.env[name] }
			p, err := r.Install(t.Context())
			do(t, p, err)
			why := strings.Join(install.SwitchedOff(r.Machine, test.runtime), "\n")
			if (why == "") != (test.says == "") || !strings.Contains(why, test.says) {
				t.Errorf("it says %q; want %q", why, test.says)
			}
		})
	}
}

// TestManagedHooksOfGeminiComeBackOn checks that an installation undoes a setting that keeps managed hooks
// from running, and that its removal restores the file.
func TestManagedHooksOfGeminiComeBackOn(t *testing.T) {
	const file = "root/etc/gemini-cli/settings.json"
	before := tree{file: `{"hooksConfig": {"enabled": false, "notifications": true}}`}
	dir := plant(t, before)
	r := request(dir, "gemini", install.Managed)
	p, err := r.Install(t.Context())
	do(t, p, err)
	if text := harvest(t, dir)[file]; !strings.Contains(text, `{"enabled": true, "notifications": true}`) || strings.Contains(text, `"name"`) {
		t.Error(text)
	}
	if why := install.SwitchedOff(r.Machine, "gemini"); len(why) > 0 {
		t.Error(why)
	}
	p, err = r.Uninstall(t.Context())
	do(t, p, err)
	if data, err := os.ReadFile(filepath.Join(dir, file)); err != nil || strings.Contains(string(data), "BeforeTool") {
		t.Errorf("%s, %v", data, err)
	}
}

// TestFoldersThatAreNotTrusted checks the folders in which a runtime skips hooks because its user does not
// trust the folder.
func TestFoldersThatAreNotTrusted(t *testing.T) {
	for _, test := range []struct {
		name, runtime string
		scope         install.Scope
		file, text    string // DIR stands for the project's folder
		says          string // empty: hooks run
	}{
		{"a project's hooks, nothing said", "copilot", install.Project, "", "", "trusted_folders"},
		{"a project's hooks, trusted", "copilot", install.Project, ".copilot/config.json", `{"trusted_folders": ["DIR"]}`, ""},
		{"a project's hooks, a folder above trusted", "copilot", install.Project, ".copilot/config.json", `{"trustedFolders": ["/x", "DIR/.."]}`, ""},
		{"a project's hooks, another one trusted", "copilot", install.Project, ".copilot/config.json", `{"trusted_folders": ["DIR-2"]}`, "trusted_folders"},
		{"the user's hooks", "copilot", install.User, "", "", ""},
		{"nothing said", "gemini", install.Managed, "", "", ""},
		{"not trusted", "gemini", install.Managed, ".gemini/trustedFolders.json", `{"DIR/..": "TRUST_FOLDER", "DIR": "DO_NOT_TRUST"}`, "not even managed ones"},
		{"trusted", "gemini", install.Managed, ".gemini/trustedFolders.json", `{"DIR/..": "DO_NOT_TRUST", "DIR": "TRUST_FOLDER"}`, ""},
		{"trusted through one beside it", "gemini", install.Managed, ".gemini/trustedFolders.json", `{"DIR/x": "TRUST_PARENT"}`, ""},
	} {
		t.Run(test.runtime+": "+test.name, func(t *testing.T) {
			dir := t.TempDir()
			r := request(dir, test.runtime, test.scope)
			p, err := r.Install(t.Context())
			do(t, p, err)
			if test.file != "" {
				path := filepath.Join(dir, "root/home/u", test.file)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(strings.ReplaceAll(test.text, "DIR", r.Machine.Dir)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			why := install.Untrusted(r.Machine, test.runtime)
			if (why == "") != (test.says == "") || !strings.Contains(why, test.says) {
				t.Errorf("it says %q; want %q", why, test.says)
			}
		})
	}
}

// TestAProjectsFileCountsWhereItsRuntimeFindsIt installs in a folder of a git repository, and checks that
// folder and one below. The expected results come from the released clients.
func TestAProjectsFileCountsWhereItsRuntimeFindsIt(t *testing.T) {
	for name, want := range map[string]struct{ written, below string }{
		"claude":   {"sub/.claude/settings.json", ""},
		"gemini":   {"sub/.gemini/settings.json", ""},
		"qwen":     {"sub/.qwen/settings.json", ""},
		"codex":    {"sub/.codex/hooks.json", "sub/.codex/hooks.json"},
		"copilot":  {".github/hooks/agentshim.json", ".github/hooks/agentshim.json"},
		"opencode": {"sub/.opencode/plugin/agentshim.js", "sub/.opencode/plugin/agentshim.js"},
	} {
		dir := plant(t, tree{"project/.git/HEAD": "", "project/sub/below/x": ""})
		r := request(dir, name, install.Project)
		root := r.Machine.Dir
		r.Machine.Dir = filepath.Join(root, "sub")
		p, err := r.Install(t.Context())
		do(t, p, err)
		if _, err := os.Stat(filepath.Join(root, want.written)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		r.Machine.Dir = filepath.Join(root, "sub", "below")
		found, err := install.Find(r.Machine, name, install.Project)
		if got, _ := filepath.Rel(root, found.Path); err != nil || (len(found.Hooks) > 0) != (want.below != "") || want.below != "" && got != want.below {
			t.Errorf("%s: from below it finds %d hooks in %s, %v", name, len(found.Hooks), got, err)
		}
		above, _ := filepath.Rel(root, install.Above(r.Machine, name))
		if (want.below == "") != (above == want.written) {
			t.Errorf("%s: from below it sees %q above", name, above)
		}
	}
}
