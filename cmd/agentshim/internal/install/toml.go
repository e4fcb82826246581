package install

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/pelletier/go-toml/v2"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install/edit"
	"github.com/hookfabric/hookfabric/schema"
)

// Codex's requirements are TOML, and no library preserves its formatting. agentshim adds and removes marked
// lines as text, and writes nothing if the result does not have the intended content.
const (
	lineMark  = " # agentshim"
	blockMark = "# agentshim: what stands between these two lines is written by 'agentshim install'"
)

const managedOnly = "allow_managed_hooks_only"

type table = map[string]any

func readTOML(text []byte) (table, error) {
	m := table{}
	err := toml.Unmarshal(text, &m)
	return m, err
}

// linesTOML yields the lines of a text, and whether agentshim wrote them.
func linesTOML(text []byte) iter.Seq2[[]byte, bool] {
	return func(yield func([]byte, bool) bool) {
		inside := false
		for line := range bytes.Lines(text) {
			bare := strings.TrimRight(string(line), "\r\n")
			marked := bare == blockMark
			if !yield(line, marked || inside || strings.HasSuffix(bare, lineMark)) {
				return
			}
			inside = inside != marked
		}
	}
}

// withoutOurs returns a text without agentshim's lines.
func withoutOurs(text []byte) (out []byte) {
	for line, ours := range linesTOML(text) {
		if !ours {
			out = append(out, line...)
		}
	}
	return out
}

// withOurs returns a text with the lines of a request. The text must not have any of them yet.
func (t *runtime) withOurs(text []byte, r *Request) ([]byte, error) {
	m, err := readTOML(text)
	if err != nil {
		return nil, err
	}
	if err := switched(m[managedOnly], managedOnly); err != nil {
		return nil, err
	}
	features, _ := m["features"].(table)
	if err := switched(features["hooks"], "features.hooks"); err != nil {
		return nil, err
	}
	var block strings.Builder
	if m["features"] == nil {
		block.WriteString("[features]\nhooks = true\n")
	} else if features["hooks"] == nil {
		header := regexp.MustCompile(`(?m)^[ \t]*\[[ \t]*features[ \t]*\][ \t]*(#.*)?$`)
		text = header.ReplaceAll(text, []byte("${0}\nhooks = true"+lineMark))
	}
	for _, e := range t.wanted(r) {
		block.WriteString(t.tableOf(r, e))
	}
	if m[managedOnly] == nil { // a top-level member must precede all tables
		text = slices.Concat([]byte(managedOnly+" = true"+lineMark+"\n"), text)
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	text = append(text, blockMark+"\n"+block.String()+blockMark+"\n"...)
	return text, t.says(text, m, r)
}

// switched returns an error if a switch is off.
func switched(v any, name string) error {
	if v != nil && v != true {
		return fmt.Errorf("%s is %v there, which can switch hooks off; set it to true, or remove the line", name, v)
	}
	return nil
}

func (t *runtime) tableOf(r *Request, e event) string {
	match := ""
	if e.tool {
		match = "matcher = \"*\"\n"
	}
	return fmt.Sprintf("[[hooks.%s]]\n%s[[hooks.%s.hooks]]\ntype = \"command\"\ncommand = %s\ntimeout = %d\n",
		e.name, match, e.name, basic(r.line(e, true)), e.seconds(&r.Hook))
}

func basic(s string) string {
	if !strings.ContainsAny(s, "'\n\r\x00") {
		return "'" + s + "'"
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\t", `\t`).Replace(s) + `"`
}

// says checks that a text has the content of the old one and the hooks of the request.
func (t *runtime) says(text []byte, old table, r *Request) error {
	got, err := readTOML(text)
	if err != nil {
		return fmt.Errorf("the file would be invalid with the lines of agentshim: %w; add the hooks yourself; 'agentshim install codex --managed --dry-run --root DIR' with an empty folder shows them", err)
	}
	want := maps.Clone(old)
	want[managedOnly] = true
	want["features"] = with(old["features"], "hooks", true)
	for _, e := range t.wanted(r) {
		ours, err := readTOML([]byte(t.tableOf(r, e)))
		if err != nil {
			return err
		}
		hooks, _ := want["hooks"].(table)
		theirs, _ := hooks[e.name].([]any)
		added, _ := ours["hooks"].(table)[e.name].([]any)
		want["hooks"] = with(want["hooks"], e.name, slices.Concat(theirs, added))
	}
	if a, b := canonical(got), canonical(want); a != b || a == "" {
		return errors.New("the lines of agentshim would change the meaning of other lines; add the hooks yourself; 'agentshim install codex --managed --dry-run --root DIR' with an empty folder shows them")
	}
	return nil
}

func with(old any, name string, v any) table {
	all := table{name: v}
	t, _ := old.(table)
	for k, o := range t {
		if k != name {
			all[k] = o
		}
	}
	return all
}

func canonical(m table) string {
	b, err := schema.Marshal(m)
	if err != nil {
		return ""
	}
	return string(b)
}

func (t *runtime) ownedTOML(text []byte) ([]Owned, error) {
	m, err := readTOML(text)
	if err != nil {
		return nil, err
	}
	b, err := schema.Marshal(table{"hooks": with(m["hooks"], "state", nil)})
	if err != nil {
		return nil, err
	}
	d, err := edit.Parse(b)
	if err != nil {
		return nil, err
	}
	return t.owned(d), nil
}

// writeTOML is [runtime.write] for TOML.
func (t *runtime) writeTOML(f file, r *Request) (before int, after []byte, err error) {
	mine, err := t.ownedTOML(f.content)
	if err != nil {
		return 0, nil, t.unreadable(f.path, fmt.Errorf("it is not valid TOML: %w", err))
	}
	if after, err = t.withOurs(withoutOurs(f.content), r); err != nil {
		return 0, nil, fmt.Errorf("%s: %w", f.path, err)
	}
	return len(mine), after, nil
}

func (t *runtime) uninstallTOML(f file, r *Request) (Plan, error) {
	mine, err := t.ownedTOML(f.content)
	if err != nil {
		return Plan{}, t.unreadable(f.path, fmt.Errorf("it is not valid TOML: %w", err))
	}
	left := withoutOurs(f.content)
	if bytes.Equal(left, f.content) {
		return Plan{}, nil
	}
	c := f.become(left, r.Scope)
	c.shown = shownTOML
	now, err := readTOML(left)
	if err != nil {
		return Plan{}, fmt.Errorf("%s: the file would be invalid without the lines of agentshim: %w; remove them yourself", f.path, err)
	}
	kept, name := f.kept()
	if old, err := readTOML(kept); name != "" && err == nil && canonical(old) == canonical(now) {
		c.After, c.drop = kept, name
	} else if name == "" && len(bytes.TrimSpace(left)) == 0 {
		c.After = nil
	}
	c.summary = t.label + " has " + strconv.Itoa(len(mine)) + " hooks of agentshim less"
	return Plan{Changes: []Change{c}}, nil
}

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
