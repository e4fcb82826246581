package hooksyaml

import (
	"fmt"
	"strconv"
)

// nameHooks gives every hook its name and puts it into the configuration.
// Given names come first, so that a derived one never takes a name from a hook
// that has asked for it, wherever that stands.
func (r *reader) nameHooks() {
	lines := make(map[string]int, len(r.drafts))
	for _, d := range r.drafts {
		if d.hook.Name == "" {
			continue
		}
		at := d.given["name"].value
		if r.taken(d.hook.Name) {
			r.fault(at, fmt.Sprintf("the name %s is taken by a hook of the running configuration", quote(d.hook.Name)), "write another one, or none")
		}
		if line, ok := lines[d.hook.Name]; ok {
			r.fault(at, fmt.Sprintf("the name %s is given twice; it is already on line %d", quote(d.hook.Name), line), "write another one, or none")
			continue
		}
		lines[d.hook.Name] = at.Line
	}
	counts := map[string]int{}
	for _, d := range r.drafts {
		if d.hook.Name == "" {
			d.hook.Name = r.free(derivedName(d.hook), lines, counts)
			lines[d.hook.Name] = d.at.Line
		}
		r.config.Hooks = append(r.config.Hooks, d.hook)
	}
}

// taken reports whether a hook that is not in the file has the name.
func (r *reader) taken(name string) bool {
	return r.options.Taken != nil && r.options.Taken(name)
}

// free returns the first of base, base-2, base-3, … that no hook has yet;
// counts remembers how far each base has come.
func (r *reader) free(base string, lines, counts map[string]int) string {
	for {
		counts[base]++
		name := base
		if n := counts[base]; n > 1 {
			name += "-" + strconv.Itoa(n)
		}
		if _, ok := lines[name]; !ok && !r.taken(name) {
			return name
		}
	}
}
