package install

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install/edit"
	"github.com/hookfabric/hookfabric/schema"
)

// An offSwitch is a setting that switches the hooks of a runtime off.
type offSwitch struct {
	path   []string
	off    jsontext.Kind // of the value that switches the hooks off
	layers []layer       // the files that may have the setting, in ascending precedence
	spares bool          // managed hooks run unless a managed file switches them off
}

// A layer is one file of a runtime's settings, or a folder of drop-ins.
type layer struct {
	place
	managed bool
}

const managedOnlyJSON = "allowManagedHooksOnly"

// offSwitch returns the switch of a runtime, which may have no layers.
func (t *runtime) offSwitch() (s offSwitch) {
	user, project, managed := layer{place: t.places[User]}, layer{place: t.places[Project]}, layer{place: t.places[Managed], managed: true}
	switch t.name {
	case "claude":
		local := layer{place: place{anchor: folder, path: ".claude/settings.local.json"}}
		s = offSwitch{path: []string{"disableAllHooks"}, off: 't', layers: append([]layer{user, project, local}, managedClaude()...), spares: true}
	case "codex":
		user = layer{place: place{anchor: home, path: ".codex/config.toml", env: "CODEX_HOME", below: "config.toml"}}
		s = offSwitch{path: []string{"features", "hooks"}, off: 'f', layers: []layer{user, managed}}
	case "gemini":
		s = offSwitch{path: []string{"hooksConfig", "enabled"}, off: 'f', layers: []layer{user, project, managed}}
	case "qwen":
		system := layer{place: place{path: "/etc/qwen-code/settings.json", darwin: "/Library/Application Support/QwenCode/settings.json"}}
		s = offSwitch{path: []string{"disableAllHooks"}, off: 't', layers: []layer{user, project, system}}
	case "copilot": // each file switches only its own hooks off
		s = offSwitch{path: []string{"disableAllHooks"}, off: 't', layers: []layer{user}, spares: true}
	}
	return s
}

// managedClaude returns the managed files of Claude Code. The drop-ins follow the file.
func managedClaude() []layer {
	p := claude().places[Managed]
	file := place{path: filepath.Dir(filepath.Dir(p.path)) + "/managed-settings.json", darwin: filepath.Dir(filepath.Dir(p.darwin)) + "/managed-settings.json"}
	return []layer{{place: file, managed: true}, {place: p, managed: true}}
}

// SwitchedOff returns why a runtime of this machine does not run agentshim's hooks.
func SwitchedOff(m Machine, name string) (why []string) {
	t := of(name)
	s := t.offSwitch()
	why = s.state(m, name)
	switch name {
	case "claude":
		why = append(why, managedOnlyClaude(m)...)
	case "gemini":
		why = append(why, disabledGemini(m)...)
	}
	return append(why, byEnvironment(m, t)...)
}

// state returns which file switches hooks off, if one does.
func (s *offSwitch) state(m Machine, name string) []string {
	spared := s.spares && managedHere(m, name)
	var is jsontext.Value
	var by string
	for _, l := range s.layers {
		if spared && !l.managed {
			continue
		}
		for _, file := range l.files(m) {
			if v := settingIn(file, s.path...); v.Kind() == 't' || v.Kind() == 'f' {
				is, by = v, file
			}
		}
	}
	if is.Kind() != s.off || by == "" {
		return nil
	}
	return []string{fmt.Sprintf("%s switches hooks off (%s is %s); remove that setting", by, strings.Join(s.path, "."), is)}
}

// files returns the files of a layer: for a folder of drop-ins, all of them, in order.
func (l *layer) files(m Machine) []string {
	path, err := m.locate(l.place)
	if err != nil {
		return nil
	}
	if !strings.HasSuffix(filepath.Dir(path), ".d") {
		return []string{path}
	}
	all, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"+filepath.Ext(path)))
	slices.Sort(all)
	return all
}

// settings returns a file of settings; nil: it does not exist, or is unreadable.
func settings(file string) *edit.Doc {
	f, err := read(file)
	if err != nil || !f.there {
		return nil
	}
	text := f.content
	if filepath.Ext(file) == ".toml" {
		m, err := readTOML(text)
		if err == nil {
			text, err = schema.Marshal(finite(m))
		}
		if err != nil {
			return nil
		}
	}
	d, err := edit.ParseAs(text, edit.Comments|edit.Mark)
	if err != nil {
		return nil
	}
	return d
}

// finite returns a value of TOML without the numbers that JSON does not have.
func finite(v any) any {
	switch v := v.(type) {
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil
		}
	case []any:
		for i := range v {
			v[i] = finite(v[i])
		}
	case table:
		for k := range v {
			v[k] = finite(v[k])
		}
	}
	return v
}

func settingIn(file string, path ...string) jsontext.Value {
	if d := settings(file); d != nil {
		return d.Get(path...)
	}
	return nil
}

// managedOnlyClaude returns which managed file excludes agentshim's hooks. No other file can.
func managedOnlyClaude(m Machine) []string {
	if managedHere(m, "claude") {
		return nil
	}
	for _, l := range managedClaude() {
		for _, file := range l.files(m) {
			if settingIn(file, managedOnlyJSON).Kind() == 't' {
				return []string{fmt.Sprintf("%s allows only managed hooks (%s), and the hooks of agentshim are not managed; install with --managed", file, managedOnlyJSON)}
			}
		}
	}
	return nil
}

func managedHere(m Machine, name string) bool {
	f, err := Find(m, name, Managed)
	return err == nil && len(f.Hooks) > 0
}

// disabledGemini returns which files switch agentshim's hooks off by their names, or else commands.
func disabledGemini(m Machine) []string {
	names := map[string]string{} // the file that disables each name
	for _, l := range gemini().offSwitch().layers {
		for _, file := range l.files(m) {
			for _, n := range stringsIn(file, "hooksConfig", "disabled") {
				names[n] = file
			}
		}
	}
	runs, by := map[string]bool{}, map[string]string{} // by event
	for _, scope := range Scopes("gemini") {
		found, err := Find(m, "gemini", scope)
		if err != nil {
			continue
		}
		for _, h := range found.Hooks {
			if file, off := names[cmp.Or(h.Name, h.Line)]; off {
				by[h.Event] = file
			} else {
				runs[h.Event] = true
			}
		}
	}
	var why []string
	for event, file := range by {
		text := fmt.Sprintf("%s switches hooks of agentshim off in hooksConfig.disabled; remove them from that list", file)
		if !runs[event] && !slices.Contains(why, text) {
			why = append(why, text)
		}
	}
	slices.Sort(why)
	return why
}

func stringsIn(file string, path ...string) (all []string) {
	d := settings(file)
	if d == nil {
		return nil
	}
	for _, v := range d.Elements(path...) {
		if text, err := jsontext.AppendUnquote(nil, v); err == nil {
			all = append(all, string(text))
		}
	}
	return all
}

// byEnvironment returns which environment variables keep managed hooks, or all hooks, from running.
func byEnvironment(m Machine, t *runtime) (why []string) {
	switch t.name {
	case "gemini":
		const name = "GEMINI_CLI_SYSTEM_SETTINGS_PATH"
		path, err := m.locate(t.places[Managed])
		if at := m.env(name); at != "" && at != path && err == nil && managedHere(m, t.name) {
			why = append(why, fmt.Sprintf("because of %s, %s reads %s instead of %s, which has the managed hooks; unset it", name, t.label, at, path))
		}
	case "opencode":
		if m.env("OPENCODE_PURE") != "" {
			why = append(why, "because of OPENCODE_PURE, OpenCode loads no plugins; unset it, and start OpenCode without --pure")
		}
		const name = "OPENCODE_TEST_MANAGED_CONFIG_DIR"
		if at := m.env(name); at != "" && managedHere(m, t.name) {
			why = append(why, fmt.Sprintf("because of %s, OpenCode reads its managed settings in %s, which do not name the plugin; unset it", name, at))
		}
	}
	return why
}

// Untrusted returns why a runtime does not run the hooks of a folder that its user does not trust, if so.
func Untrusted(m Machine, name string) string {
	switch name {
	case "copilot":
		return untrustedCopilot(m)
	case "gemini":
		return untrustedGemini(m)
	}
	return ""
}

// untrustedCopilot checks the hooks of a project, which Copilot skips in an untrusted folder.
func untrustedCopilot(m Machine) string {
	found, err := Find(m, "copilot", Project)
	user, uerr := Find(m, "copilot", User)
	if err != nil || uerr != nil || len(found.Hooks) == 0 || len(user.Hooks) > 0 || managedHere(m, "copilot") {
		return ""
	}
	config, err := m.locate(place{anchor: home, path: ".copilot/config.json", env: "COPILOT_HOME", below: "config.json"})
	if err != nil {
		return ""
	}
	for _, list := range []string{"trusted_folders", "trustedFolders"} {
		for _, dir := range stringsIn(config, list) {
			if within(m.Dir, dir) {
				return ""
			}
		}
	}
	return fmt.Sprintf("GitHub Copilot does not run the hooks in %s, because %s does not have this folder in trusted_folders; run copilot here, and trust the folder", found.Path, config)
}

// untrustedGemini checks whether the user marked the folder as not trusted.
func untrustedGemini(m Machine) string {
	trust := offSwitch{path: []string{"security", "folderTrust", "enabled"}, off: 'f', layers: gemini().offSwitch().layers}
	list, err := m.locate(place{anchor: home, path: ".gemini/trustedFolders.json"})
	if off := trust.state(m, "gemini"); err != nil || len(off) > 0 {
		return ""
	}
	d := settings(list)
	if d == nil {
		return ""
	}
	said, longest := "", -1
	for _, rule := range d.Names() {
		value, dir := strings.Trim(string(d.Get(rule)), `"`), filepath.Clean(rule)
		if value == "TRUST_PARENT" {
			dir = filepath.Dir(dir)
		}
		if within(m.Dir, dir) && len(dir) > longest {
			said, longest = value, len(dir)
		}
	}
	if said != "DO_NOT_TRUST" {
		return ""
	}
	return fmt.Sprintf("Gemini CLI runs no hooks in this folder, not even managed ones, because %s marks the folder as not trusted; run gemini here, and change that with /permissions", list)
}

func within(dir, other string) bool {
	rel, err := filepath.Rel(other, dir)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
