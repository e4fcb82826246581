package install

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/agentshim/install/edit"
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
	switch {
	case t.plugin:
		return t.installPlugin(f, r)
	case t.places[r.Scope].toml:
		return t.installTOML(f, r)
	}
	d, err := edit.Parse(f.content)
	if err != nil {
		return Plan{}, unreadable(f.path, err)
	}
	before := t.owned(d)
	if err = set(d, t.sets[r.Scope]); err == nil {
		err = t.merge(d, r, t.wanted(r))
	}
	if err != nil {
		return Plan{}, fmt.Errorf("%s: %w", f.path, err)
	}
	c := f.become(d.Text(), r.Scope)
	c.shown = t.shown
	if f.there && edit.Equal(d.Text(), content(f.content)) {
		c.After = c.Before // at most its formatting would differ
	}
	c.backup = len(before) == 0
	c.summary = installed(t, len(t.wanted(r)), len(before))
	return Plan{Changes: []Change{c}}, nil
}

// installed says what an installation does.
func installed(t *runtime, now, before int) string {
	if before == 0 {
		return fmt.Sprintf("%s asks the fabric at %d events now", t.label, now)
	}
	return fmt.Sprintf("%s's older hooks of agentshim are up to date now, at %d events", t.label, now)
}

func content(text []byte) []byte {
	if len(strings.TrimSpace(string(text))) == 0 {
		return []byte("{}")
	}
	return text
}

// unreadable says what to do about a configuration that can not be changed.
func unreadable(path string, err error) error {
	if errors.Is(err, edit.ErrComments) {
		return fmt.Errorf("%s has comments, so it is not plain JSON, and changing it might lose them; take them out, or write the hooks there yourself: "+
			"'agentshim install … --dry-run --root DIR' with an empty folder shows them", path)
	}
	return fmt.Errorf("%s can not be read, so nothing was changed: %w; mend it, and install again", path, err)
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
	d, err := edit.Parse(f.content)
	if err != nil {
		return Plan{}, unreadable(f.path, err)
	}
	mine := len(t.owned(d))
	if mine == 0 {
		return Plan{}, nil
	}
	if err := t.merge(d, r, nil); err != nil {
		return Plan{}, fmt.Errorf("%s: %w", f.path, err)
	}
	c := t.without(f, d, r)
	c.summary = fmt.Sprintf("%s has %d hooks of agentshim less", t.label, mine)
	return Plan{Changes: []Change{c}}, nil
}

// without is the change that leaves what is in d, where our hooks are not any more.
func (t *runtime) without(f file, d *edit.Doc, r *Request) Change {
	kept, name := f.kept()
	old, err := edit.Parse(kept)
	if name == "" || err != nil { // there was no file before, or nobody knows what was in it
		c := f.become(d.Text(), r.Scope)
		c.shown = t.shown
		if name == "" && onlySettings(d, t.sets[r.Scope]) {
			c.After = nil
		}
		return c
	}
	for _, s := range t.sets[r.Scope] {
		if old.Get(s.name) == nil && edit.Equal(d.Get(s.name), s.value) {
			d.Delete(s.name)
		}
	}
	c := f.become(d.Text(), r.Scope)
	c.shown = t.shown
	if t.bare(old) == t.bare(d) {
		c.After, c.drop = kept, name // nothing else changed since
	}
	return c
}

// onlySettings reports whether nothing is in d but what an installation writes.
func onlySettings(d *edit.Doc, all []setting) bool {
	for _, name := range d.Names() {
		if !slices.ContainsFunc(all, func(s setting) bool { return s.name == name && edit.Equal(d.Get(name), s.value) }) {
			return false
		}
	}
	return true
}

// bare is a document without its form, and without lists of hooks that are empty.
func (t *runtime) bare(d *edit.Doc) string {
	b, err := edit.Parse(d.Text())
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
