package install

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install/edit"
	"github.com/hookfabric/hookfabric/schema"
)

// merge gives each wanted event of d agentshim's hook once, and removes it from all others.
func (t *runtime) merge(d *edit.Doc, r *Request, wanted []event) error {
	if err := t.shaped(d); err != nil {
		return err
	}
	for _, name := range d.Names(t.below...) {
		if !slices.ContainsFunc(wanted, func(e event) bool { return e.name == name }) {
			if err := t.one(d, name, nil); err != nil {
				return err
			}
		}
	}
	for _, e := range wanted {
		v, err := schema.Marshal(t.entry(r, e))
		if err == nil {
			err = t.one(d, e.name, v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// shaped returns an error if the hooks in a document do not have the shape that the runtime reads.
func (t *runtime) shaped(d *edit.Doc) error {
	for depth := range t.below {
		v := d.Get(t.below[:depth+1]...)
		if v != nil && v.Kind() != '{' {
			return fmt.Errorf("%q is %s, but must be an object; correct it, and install again", t.below[depth], schema.KindName(v.Kind()))
		}
	}
	for _, name := range d.Names(t.below...) {
		if k := d.Get(t.at(name)...).Kind(); k != '[' && slices.ContainsFunc(t.events, func(e event) bool { return e.name == name }) {
			return fmt.Errorf("%q is %s, but must be a list; correct it, and install again", t.below[0]+"."+name, schema.KindName(k))
		}
	}
	return nil
}

func (t *runtime) at(event string) []string { return append(slices.Clone(t.below), event) }

// one updates agentshim's hook at one event; nil: it removes the hook.
func (t *runtime) one(d *edit.Doc, event string, want jsontext.Value) error {
	at := t.at(event)
	all := d.Elements(at...)
	there := false
	for i, v := range slices.Backward(all) {
		mine, rest := t.part(v, event)
		switch {
		case len(mine) == 0:
		case rest != nil: // a user put agentshim's hooks and others into one entry
			for _, j := range slices.Backward(mine) {
				dropIn(d, at, i, j)
			}
		case want != nil && !there && !slices.ContainsFunc(all[:i], func(v jsontext.Value) bool { return t.only(v, event) }):
			d.Put(want, i, at...)
			there = true
		default:
			d.Drop(i, at...)
		}
	}
	switch {
	case want != nil && !there:
		return d.Append(want, at...)
	case want == nil && len(all) > 0 && len(d.Elements(at...)) == 0:
		d.Delete(at...)
		if len(d.Names(t.below...)) == 0 {
			d.Delete(t.below...)
		}
	}
	return nil
}

// only reports whether an entry has agentshim's hooks and no others.
func (t *runtime) only(entry jsontext.Value, event string) bool {
	mine, rest := t.part(entry, event)
	return len(mine) > 0 && rest == nil
}

func dropIn(d *edit.Doc, at []string, i, j int) {
	g, err := edit.Parse(d.Elements(at...)[i])
	if err != nil {
		return // it has already been parsed
	}
	g.Drop(j, "hooks")
	d.Put(g.Text(), i, at...)
}

// hooksIn returns the hooks of an entry. An entry without a group is one hook.
func hooksIn(entry jsontext.Value) []jsontext.Value {
	var g struct {
		Hooks []jsontext.Value `json:"hooks"`
	}
	if entry.Kind() != '{' || schema.Unmarshal(entry, &g) != nil {
		return nil
	}
	if g.Hooks == nil {
		return []jsontext.Value{entry}
	}
	return g.Hooks
}

// part returns the indexes of agentshim's hooks in an entry, and the other hooks.
func (t *runtime) part(entry jsontext.Value, event string) (mine []int, rest []jsontext.Value) {
	for i, h := range hooksIn(entry) {
		if _, ok := owned(h, t.name, event); ok {
			mine = append(mine, i)
		} else {
			rest = append(rest, h)
		}
	}
	return mine, rest
}

// owned returns agentshim's hooks in a configuration, in order.
func (t *runtime) owned(d *edit.Doc) (all []Owned) {
	for _, name := range d.Names(t.below...) {
		for _, entry := range d.Elements(t.at(name)...) {
			for _, h := range hooksIn(entry) {
				if o, ok := owned(h, t.name, name); ok {
					o.Gate = slices.ContainsFunc(t.events, func(e event) bool { return e.name == o.Event && e.gate })
					o.Differs = t.differs(entry, h, &o)
					all = append(all, o)
				}
			}
		}
	}
	return all
}

// set writes the settings that an installation needs beside its hooks.
func set(d *edit.Doc, all []setting) error {
	for _, s := range all {
		if s.keep && d.Get(s.path...) != nil {
			continue
		}
		if err := d.Set(s.value, s.path...); err != nil {
			return err
		}
	}
	return nil
}

// unset removes the settings of an installation that the file did not have before it.
func unset(d, before *edit.Doc, all []setting) {
	for _, s := range all {
		if before.Get(s.path...) != nil || !edit.Equal(d.Get(s.path...), s.value) {
			continue
		}
		d.Delete(s.path...)
		for up := s.path[:len(s.path)-1]; len(up) > 0 && before.Get(up...) == nil && len(d.Names(up...)) == 0; up = up[:len(up)-1] {
			d.Delete(up...)
		}
	}
}
