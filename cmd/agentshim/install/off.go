package install

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hookfabric/hookfabric/cmd/agentshim/install/edit"
)

// SwitchedOff says why a runtime of this machine does not run our hooks, though
// some configuration may have them; empty: nothing of the kind was found.
func SwitchedOff(m Machine, name string) string {
	for _, p := range switches(name) {
		path, err := m.locate(p)
		if err != nil {
			continue
		}
		for _, file := range siblings(path) {
			if why := switchedOff(m, name, file); why != "" {
				return why
			}
		}
	}
	return ""
}

// switches are the files in which a runtime's hooks can be switched off.
func switches(name string) []place {
	var all []place
	if t, ok := runtimes()[name]; ok {
		for _, s := range []Scope{User, Project, Managed} {
			if p, has := t.places[s]; has {
				all = append(all, p)
			}
		}
	}
	switch name {
	case "claude":
		all = append(all, place{anchor: folder, path: ".claude/settings.local.json"}, place{path: "/etc/claude-code/managed-settings.json"})
	case "codex":
		all = append(all, place{anchor: home, path: ".codex/config.toml", env: "CODEX_HOME", below: "config.toml"})
	case "copilot":
		all = append(all, place{anchor: home, path: ".copilot/settings.json", env: "COPILOT_HOME", below: "settings.json"})
	}
	return all
}

// siblings are the files that count beside one: all of a folder of drop-ins.
func siblings(path string) []string {
	if !strings.HasSuffix(filepath.Dir(path), ".d") {
		return []string{path}
	}
	all, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"+filepath.Ext(path)))
	slices.Sort(all)
	return all
}

func switchedOff(m Machine, name, file string) string {
	f, err := read(file)
	if err != nil || !f.there {
		return ""
	}
	if filepath.Ext(file) == ".toml" {
		t, err := readTOML(f.content)
		features, _ := t["features"].(table)
		if err == nil && features["hooks"] == false {
			return fmt.Sprintf("%s switches hooks off (features.hooks); set it to true", file)
		}
		return ""
	}
	d, err := edit.Parse(f.content)
	if err != nil {
		return ""
	}
	if word := off(d); word != "" {
		return fmt.Sprintf("%s switches hooks off (%s); take that out", file, word)
	}
	if string(d.Get(managedOnlyJSON)) == "true" && !managedHere(m, name) {
		return fmt.Sprintf("%s lets managed hooks run only (%s), and none of ours is managed; install with --managed", file, managedOnlyJSON)
	}
	return ""
}

const managedOnlyJSON = "allowManagedHooksOnly"

func managedHere(m Machine, name string) bool {
	f, err := Find(m, name, Managed)
	return err == nil && len(f.Hooks) > 0
}

// Label is what people call a runtime.
func Label(name string) string {
	if t, ok := runtimes()[name]; ok {
		return t.label
	}
	return name
}
