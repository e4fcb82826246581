package install

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install/edit"
)

// What would be changed is shown to people, and ends up in logs: of what is not
// ours only the names are shown, since settings hold keys and tokens.

// hidden stands for what is not shown.
const hidden = "…"

// shown is a configuration as people may see it: our hooks, and the names of all
// else.
func (t *runtime) shown(text []byte) []byte {
	return edit.Mask(text, hidden, func(path []string, v jsontext.Value) bool {
		if len(path) <= len(t.below) || !slices.Equal(path[:len(t.below)], t.below) {
			return false
		}
		if _, ok := owned(v, t.name, path[len(t.below)]); ok {
			return true
		}
		mine, rest := t.part(v, path[len(t.below)])
		return len(mine) > 0 && rest == nil
	})
}

// shownTOML is the same for TOML: our lines, and that there are others.
func shownTOML(text []byte) []byte {
	var out []byte
	inside := false
	for line := range bytes.Lines(text) {
		bare := strings.TrimRight(string(line), "\r\n")
		marked := bare == blockMark
		if marked {
			inside = !inside
		}
		if !marked && !inside && !strings.HasSuffix(bare, lineMark) {
			line = []byte(hidden + "\n")
		}
		out = append(out, line...)
	}
	return out
}

// hideUsers hides names and passwords in URLs, which hooks may have that somebody
// wrote by hand.
func hideUsers(text []byte) []byte {
	return regexp.MustCompile(`//[^/@\s"']+@`).ReplaceAll(text, []byte("//***@"))
}
