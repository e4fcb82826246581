package install

import (
	"regexp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install/edit"
)

// Diffs end up in logs. They show only the names of foreign entries, which may hold keys and tokens.

// hidden replaces the values that a diff must not show.
const hidden = "…"

// shown returns a configuration for a diff: agentshim's hooks, and only the names of all other entries.
func (t *runtime) shown(text []byte) []byte {
	return edit.Mask(text, hidden, func(path []string, v jsontext.Value) bool {
		if len(path) <= len(t.below) || !slices.Equal(path[:len(t.below)], t.below) {
			return false
		}
		if _, ok := owned(v, t.name, path[len(t.below)]); ok {
			return true
		}
		return t.only(v, path[len(t.below)])
	})
}

// shownTOML is the same for TOML: it returns agentshim's lines, and marks the others.
func shownTOML(text []byte) (out []byte) {
	for line, ours := range linesTOML(text) {
		if !ours {
			line = []byte(hidden + "\n")
		}
		out = append(out, line...)
	}
	return out
}

// hideUsers hides names and passwords in URLs, which a user may have added to a hook by hand.
func hideUsers(text []byte) []byte {
	return regexp.MustCompile(`//[^/@\s"']+@`).ReplaceAll(text, []byte("//***@"))
}
