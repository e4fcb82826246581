package hooksyaml

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// nameHooks adds the hooks of the packs to the configuration, and then the hooks of the file with their names.
// Given names come first, so that a derived name never takes a given one, wherever that is in the file.
func (r *reader) nameHooks(packs []used) {
	names := newNamer(r.options.Taken)
	for i := range packs {
		for _, h := range r.packHooks(&packs[i]) {
			names.lines[h.Name] = packs[i].at.Line
			r.config.Hooks = append(r.config.Hooks, h)
		}
	}
	for _, d := range r.drafts {
		if d.hook.Name == "" {
			continue
		}
		at := d.given["name"].value
		if names.taken(d.hook.Name) {
			r.fault(at, fmt.Sprintf("the name %s is taken by a hook of the running configuration", quote(d.hook.Name)), "write another one, or remove it")
		}
		if line, ok := names.lines[d.hook.Name]; ok {
			r.fault(at, fmt.Sprintf("the name %s is given twice; it is already on line %d", quote(d.hook.Name), line), "write another one, or remove it")
			continue
		}
		names.lines[d.hook.Name] = at.Line
	}
	for _, d := range r.drafts {
		if d.hook.Name == "" {
			d.hook.Name = names.derive(&d.hook)
			names.lines[d.hook.Name] = d.at.Line
		}
		r.config.Hooks = append(r.config.Hooks, d.hook)
	}
}

// A namer tracks the names in a file.
type namer struct {
	// taken reports whether a name is used outside the file.
	taken func(string) bool
	// lines are the names in the file, with the lines of their hooks.
	lines map[string]int
	// counts has the last number of each derived name.
	counts map[string]int
}

func newNamer(taken func(string) bool) *namer {
	if taken == nil {
		taken = func(string) bool { return false }
	}
	return &namer{taken: taken, lines: map[string]int{}, counts: map[string]int{}}
}

// derive returns the first unused name of base, base-2, base-3, …, where base is derived
// from the handler.
func (n *namer) derive(h *schema.Hook) string {
	base := derivedName(*h)
	for {
		n.counts[base]++
		name := base
		if count := n.counts[base]; count > 1 {
			name += "-" + strconv.Itoa(count)
		}
		if _, ok := n.lines[name]; !ok && !n.taken(name) {
			return name
		}
	}
}

// named returns the hooks whose names must be written, because another one would be
// derived, or because the hook was registered and its name unregisters it. Names that
// cannot be derived count as written before others are checked, as when the file is read.
func named(hooks iter.Seq[*schema.Hook]) map[*schema.Hook]bool {
	written, names := map[*schema.Hook]bool{}, newNamer(nil)
	for h := range hooks {
		rest, ok := strings.CutPrefix(h.Name, derivedName(*h))
		if h.Registered || !ok || rest != "" && rest[0] != '-' {
			written[h], names.lines[h.Name] = true, 0
		}
	}
	for h := range hooks {
		if written[h] {
			continue
		}
		base := derivedName(*h)
		before := names.counts[base]
		if names.derive(h) != h.Name {
			written[h], names.counts[base] = true, before
		}
		names.lines[h.Name] = 0
	}
	return written
}
