package hooksyaml

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// nameHooks gives every hook its name and puts it into the configuration.
// Given names come first, so that a derived one never takes a name from a hook
// that has asked for it, wherever that stands.
func (r *reader) nameHooks() {
	names := newNamer(r.options.Taken)
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

// A namer knows which names the hooks of a file have.
type namer struct {
	// taken reports the names that hooks elsewhere have.
	taken func(string) bool
	// lines are the names in the file, with the lines of their hooks.
	lines map[string]int
	// counts remembers how far each derived name has come.
	counts map[string]int
}

func newNamer(taken func(string) bool) *namer {
	if taken == nil {
		taken = func(string) bool { return false }
	}
	return &namer{taken: taken, lines: map[string]int{}, counts: map[string]int{}}
}

// derive returns the first of base, base-2, base-3, … that no hook has yet,
// where base is made from the handler.
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

// named finds the hooks whose names have to be written, because another one
// would be derived when they are read in this order, or because the hook was
// registered: its name is what unregisters it. Names that cannot be derived
// are known to be written before the others are judged, as they are when the
// file is read.
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
