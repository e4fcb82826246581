package install

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install/edit"
)

func (t *runtime) install(r *Request) (Plan, error) {
	path, err := r.path(t)
	if err != nil {
		return Plan{}, err
	}
	f, err := read(path)
	if err != nil {
		return Plan{}, err
	}
	if t.plugin {
		return t.installPlugin(f, r)
	}
	write, shown := t.write, t.shown
	if t.places[r.Scope].toml {
		write, shown = t.writeTOML, shownTOML
	}
	before, after, err := write(f, r)
	if err != nil {
		return Plan{}, err
	}
	c := f.become(after, r.Scope)
	c.shown, c.backup, c.summary = shown, before == 0, t.installed(r, before)
	return Plan{Changes: []Change{c}}, nil
}

// write returns the number of agentshim's hooks in a file, and the file with those of a request.
func (t *runtime) write(f file, r *Request) (before int, after []byte, err error) {
	d, err := edit.ParseAs(f.content, t.syntax)
	if err != nil {
		return 0, nil, t.unreadable(f.path, err)
	}
	mine, was := t.owned(d), d.Plain()
	if err = set(d, t.sets[r.Scope]); err == nil {
		err = t.merge(d, r, t.wanted(r))
	}
	if err != nil {
		return 0, nil, fmt.Errorf("%s: %w", f.path, err)
	}
	if after = d.Text(); f.there && edit.Equal(d.Plain(), was) {
		after = f.content // only its formatting could differ
	}
	return len(mine), after, nil
}

func (t *runtime) installed(r *Request, before int) string {
	n := len(t.wanted(r))
	switch {
	case t.name == "codex" && r.Scope != Managed:
		return fmt.Sprintf("wrote hooks at %d events; Codex runs them after you trust them", n)
	case before == 0:
		return fmt.Sprintf("%s now asks the fabric at %d events", t.label, n)
	}
	return fmt.Sprintf("updated the hooks of agentshim in %s, at %d events", t.label, n)
}

// unreadable returns an error that says how to make a configuration readable.
func (t *runtime) unreadable(path string, err error) error {
	also := fmt.Sprintf("so %s ignores the whole file", t.label)
	switch {
	case errors.Is(err, edit.ErrComments):
		return fmt.Errorf("%s has comments, %s; remove them, and install again", path, also)
	case errors.Is(err, edit.ErrMark):
		return fmt.Errorf("%s begins with a byte order mark, %s; save it without the mark, and install again", path, also)
	}
	return fmt.Errorf("reading %s: %w; correct the file, and install again", path, err)
}

func (t *runtime) uninstall(r *Request) (Plan, error) {
	path, err := r.path(t)
	if err != nil {
		return Plan{}, err
	}
	f, err := read(path)
	switch {
	case err != nil:
		return Plan{}, err
	case t.plugin:
		return t.uninstallPlugin(f, r)
	case !f.there:
		return Plan{}, nil
	case t.places[r.Scope].toml:
		return t.uninstallTOML(f, r)
	}
	d, err := edit.ParseAs(f.content, t.syntax)
	if err != nil {
		return Plan{}, t.unreadable(f.path, err)
	}
	mine := len(t.owned(d))
	if mine == 0 {
		return Plan{}, nil
	}
	if err := t.merge(d, r, nil); err != nil {
		return Plan{}, fmt.Errorf("%s: %w", f.path, err)
	}
	c := t.without(f, d, r)
	c.summary = fmt.Sprintf("removed from %s: %d hooks of agentshim", t.label, mine)
	return Plan{Changes: []Change{c}}, nil
}

// without returns the change to d, which no longer has agentshim's hooks, or restores the backup copy.
func (t *runtime) without(f file, d *edit.Doc, r *Request) Change {
	kept, name := f.kept()
	old, err := edit.ParseAs(kept, t.syntax)
	restored := name != "" && err == nil // else there was no file before, or its content is unknown
	if restored {
		unset(d, old, t.sets[r.Scope])
	}
	c := f.become(d.Text(), r.Scope)
	c.shown = t.shown
	switch {
	case restored && t.bare(old) == t.bare(d):
		c.After, c.drop = kept, name // nothing else has changed since the installation
	case name == "" && onlySettings(d, t.sets[r.Scope]):
		c.After = nil
	}
	return c
}

// onlySettings reports whether d has only settings that an installation writes.
func onlySettings(d *edit.Doc, all []setting) bool {
	empty, err := edit.Parse(nil)
	rest, rerr := edit.Parse(d.Plain())
	if err != nil || rerr != nil {
		return false
	}
	unset(rest, empty, all)
	return len(rest.Names()) == 0
}

// bare returns a document without its formatting, and without empty lists of hooks.
func (t *runtime) bare(d *edit.Doc) string {
	b, err := edit.Parse(d.Plain())
	if err != nil {
		return ""
	}
	for _, name := range b.Names(t.below...) {
		if v := b.Get(t.at(name)...); v.Kind() == '[' && len(b.Elements(t.at(name)...)) == 0 {
			b.Delete(t.at(name)...)
		}
	}
	if v := b.Get(t.below...); len(t.below) > 0 && v.Kind() == '{' && len(b.Names(t.below...)) == 0 {
		b.Delete(t.below...)
	}
	text := jsontext.Value(slices.Clone(b.Text()))
	_ = text.Canonicalize()
	return string(text)
}
