package install

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install/edit"
)

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
	trust := offSwitch{path: []string{"security", "folderTrust", "enabled"}, off: false}
	s, _ := gemini().offSwitch()
	trust.layers = s.layers
	list, err := m.locate(place{anchor: home, path: ".gemini/trustedFolders.json"})
	if off := trust.state(m, "gemini"); err != nil || len(off) > 0 {
		return ""
	}
	f, err := read(list)
	if err != nil || !f.there {
		return ""
	}
	d, err := edit.ParseAs(f.content, edit.Comments|edit.Mark)
	if err != nil {
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

// within reports whether dir is the other folder, or lies below it.
func within(dir, other string) bool {
	rel, err := filepath.Rel(other, dir)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}
