package install

import (
	"fmt"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install/edit"
)

// A Found lists agentshim's parts of a configuration.
type Found struct {
	// Path is the file; There: it exists.
	Path  string
	There bool
	// Hooks are agentshim's hooks, in order.
	Hooks []Owned
	// Missing are the events at which the configuration lacks a hook that an installation would write.
	Missing []string
	// Lacks are the settings that an installation would write beside the hooks, and that the
	// configuration lacks.
	Lacks []string
}

// Find returns agentshim's parts of a runtime's configuration. It returns an error if it cannot read
// the configuration.
func Find(m Machine, name string, s Scope) (Found, error) {
	r := &Request{Runtime: name, Scope: s, Machine: m}
	t, err := r.target()
	if err != nil {
		return Found{}, err
	}
	path, err := r.path(t)
	if err != nil {
		return Found{}, err
	}
	f, err := read(path)
	found := Found{Path: f.path, There: f.there}
	if err != nil || !f.there {
		found.Path = path
		return found, err
	}
	switch {
	case t.plugin:
		if !ourPlugin(f.content) {
			return found, fmt.Errorf("%s is not the plugin that 'agentshim install %s' writes; remove it, and install again", f.path, name)
		}
		found.Hooks = []Owned{pluginHook(f.content)}
		found.Lacks, err = r.unnamed(t)
		return found, err
	case t.places[s].toml:
		found.Hooks, err = t.ownedTOML(f.content)
	default:
		var d *edit.Doc
		if d, err = edit.ParseAs(f.content, t.syntax); err == nil {
			found.Hooks = t.owned(d)
			if len(found.Hooks) > 0 {
				found.Lacks = t.lacks(d, s)
			}
		}
	}
	if err != nil {
		return found, t.unreadable(f.path, err)
	}
	for _, e := range t.wanted(r) {
		if len(found.Hooks) > 0 && !has(found.Hooks, e.name) {
			found.Missing = append(found.Missing, e.name)
		}
	}
	return found, nil
}

func has(all []Owned, event string) bool {
	for _, o := range all {
		if o.Event == event {
			return true
		}
	}
	return false
}
