package install

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/agentshim/internal/install/edit"
	"github.com/hookfabric/hookfabric/schema"
)

// harmless reports whether a member affects neither the calls nor the answers, or is checked elsewhere.
func harmless(name string) bool {
	return slices.Contains([]string{"name", "command", "args", "bash", "url", "timeout", "timeoutSec", "allowedEnvVars", "onFailure",
		"statusMessage", "description", "comment", "commandWindows", "powershell", "additionalContextLimit"}, name)
}

// differs returns the members of an entry that an installation would omit or write differently.
func (t *runtime) differs(entry, hook jsontext.Value, o *Owned) []string {
	i := slices.IndexFunc(t.events, func(e event) bool { return e.name == o.Event })
	if i < 0 || o.URL != "" && !t.http.Known() {
		return nil // of another release, or reported elsewhere
	}
	want, err := schema.Marshal(t.entry(o.request(t), t.events[i]))
	if err != nil {
		return nil
	}
	var all []string
	// With an id on the command line, all calls would count as one.
	if o.URL == "" && o.Flag("--event") != o.Event || o.Flag("--event-id") != "" {
		all = append(all, "command")
	}
	inner := members(want)
	if grouped := inner["hooks"]; grouped != nil {
		var hooks []jsontext.Value
		if schema.Unmarshal(grouped, &hooks) != nil || len(hooks) != 1 {
			return all
		}
		inner = members(hooks[0])
		if is := members(entry)["matcher"]; !fitsAll(is) {
			all = append(all, "matcher")
		}
	}
	is := members(hook)
	for name, v := range is {
		if _, known := inner[name]; !known && !harmless(name) && !absent(v) && (name != "matcher" || !fitsAll(v)) && name != "type" {
			all = append(all, name)
		}
	}
	for name, v := range inner {
		if !harmless(name) && !edit.Equal(is[name], v) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// request returns a request that would install the hook as it is, as far as differs compares it.
func (o *Owned) request(t *runtime) *Request {
	r := &Request{Runtime: t.name, Scope: User, Hook: Hook{Timeout: schema.RuntimeTimeout}}
	if len(o.Command) > 0 {
		r.Hook.Shim = o.Command[0]
	}
	if slices.Contains(o.Command, "--managed") {
		r.Scope = Managed
	}
	if u, err := url.Parse(o.URL); err == nil && o.URL != "" {
		r.Hook.URL = u.Scheme + "://" + u.Host
	}
	return r
}

func members(v jsontext.Value) map[string]jsontext.Value {
	all := map[string]jsontext.Value{}
	if v.Kind() != '{' || schema.Unmarshal(v, &all) != nil {
		return nil
	}
	return all
}

func fitsAll(v jsontext.Value) bool {
	return absent(v) || slices.Contains([]string{`"*"`, `".*"`}, string(v))
}

// absent reports whether a value means the same as a missing member.
func absent(v jsontext.Value) bool {
	return len(v) == 0 || slices.Contains([]string{"null", "false", `""`, "{}", "[]"}, string(v))
}

// lacks returns the settings that an installation would write beside the hooks, and that d lacks.
func (t *runtime) lacks(d *edit.Doc, s Scope) (all []string) {
	for _, want := range t.sets[s] {
		if v := d.Get(want.path...); v == nil || !want.keep && !edit.Equal(v, want.value) {
			all = append(all, strings.Join(want.path, "."))
		}
	}
	return all
}

// A Found lists agentshim's parts of a configuration.
type Found struct {
	// Path is the file; There: it exists.
	Path  string
	There bool
	// Hooks are agentshim's hooks, in order.
	Hooks []Owned
	// Missing are the events at which the configuration lacks a hook that an installation would write.
	Missing []string
	// Lacks are the settings that an installation would write beside the hooks.
	Lacks []string
}

// Find returns agentshim's parts of a runtime's configuration.
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
		if len(found.Hooks) > 0 && !slices.ContainsFunc(found.Hooks, func(o Owned) bool { return o.Event == e.name }) {
			found.Missing = append(found.Missing, e.name)
		}
	}
	return found, nil
}
