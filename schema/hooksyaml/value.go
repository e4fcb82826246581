package hooksyaml

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/hookfabric/hookfabric/schema"
)

// text reads a text of limited length. It rejects values that YAML reads as a number or a
// boolean, because 0755, 1e3 and yes are ambiguous.
func (r *reader) text(n *yaml.Node, what, hint string) (string, bool) {
	switch {
	case n.Tag == "!!null":
		r.fault(n, what+" is empty", hint)
	case n.Kind != yaml.ScalarNode || n.Tag != "!!str":
		r.fault(n, fmt.Sprintf("%s is %s; it must be text", what, describe(n)), hint)
	case len(n.Value) > maxText:
		r.fault(n, fmt.Sprintf("%s has %d bytes; the limit is %d", what, len(n.Value), maxText), "write less")
	default:
		return n.Value, true
	}
	return "", false
}

// word reads a text that is not empty and has no spaces around it.
func (r *reader) word(n *yaml.Node, what, hint string) (string, bool) {
	s, ok := r.text(n, what, hint)
	switch {
	case !ok:
	case strings.TrimSpace(s) == "":
		r.fault(n, what+" is empty", hint)
	case strings.TrimSpace(s) != s:
		r.fault(n, fmt.Sprintf("%s begins or ends with a space", what), fmt.Sprintf("write %s", quote(strings.TrimSpace(s))))
	case strings.ContainsRune(s, 0):
		r.fault(n, what+" has a NUL in it", "write it without")
	default:
		return s, true
	}
	return "", false
}

// flag reads a boolean.
func (r *reader) flag(e entry) bool {
	if e.value.Tag == "!!bool" {
		var yes bool
		if e.value.Decode(&yes) == nil {
			return yes
		}
	}
	hint := "write true or false"
	switch strings.ToLower(e.value.Value) {
	case "yes", "on", "1":
		hint = "write true"
	case "no", "off", "0":
		hint = "write false"
	}
	r.fault(e.value, fmt.Sprintf("%s is %s; it must be a boolean", e.key, describe(e.value)), hint)
	return false
}

// list reads a list with a function for its items. An empty list is not nil, because it
// was written on purpose.
func (r *reader) list(e entry, what string, each func(*yaml.Node) (string, bool)) []string {
	n := e.value
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!str":
		r.fault(n, fmt.Sprintf("%s is %s; it must be a list", what, describe(n)), fmt.Sprintf("write [%s]", clip(n.Value)))
		return nil
	case n.Kind != yaml.SequenceNode:
		r.fault(n, fmt.Sprintf("%s is %s; it must be a list", what, describe(n)), "write [a, b], or [] for none")
		return nil
	case len(n.Content) > maxItems:
		r.fault(n, fmt.Sprintf("%s has %d items; the limit is %d", what, len(n.Content), maxItems), "write fewer")
		return nil
	}
	out := make([]string, 0, len(n.Content))
	for _, item := range n.Content {
		s, ok := each(deref(item))
		if ok && slices.Contains(out, s) && e.key != "args" {
			r.fault(item, fmt.Sprintf("%s lists %s twice", what, quote(s)), "keep one of them")
		}
		if ok {
			out = append(out, s)
		}
	}
	return out
}

// readOptions reads the options of a builtin as JSON values, so that encoding does not
// change a configuration.
func (r *reader) readOptions(h *schema.Hook, e entry) {
	if _, ok := r.mapping(e.value, "options", "write options: {} or keys below it"); ok {
		h.Options, _ = r.option(e.value, 0).(map[string]any)
	}
}

// option reads one value of options, at a depth of levels below the top.
func (r *reader) option(n *yaml.Node, depth int) any {
	if depth > maxDepth {
		r.fault(n, fmt.Sprintf("options nest deeper than %d levels", maxDepth), "write them flat")
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		entries, _ := r.mapping(n, "options", "")
		m := make(map[string]any, len(entries))
		for _, e := range entries {
			m[e.key] = r.option(e.value, depth+1)
		}
		return m
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			list = append(list, r.option(deref(item), depth+1))
		}
		return list
	}
	return r.scalar(n)
}

// exact is the limit up to which JSON numbers represent every integer.
const exact = 1 << 53

var zeroed = regexp.MustCompile(`^[-+]?0[0-9_]+$`)

// octal rejects whole numbers that begin with a zero: YAML readers differ on whether 010
// is eight or ten.
func (r *reader) octal(n *yaml.Node) bool {
	is := n.Tag == "!!int" && zeroed.MatchString(n.Value)
	if is {
		r.fault(n, fmt.Sprintf("the number %s begins with a zero, as octal numbers do", clip(n.Value)), "write it without the zero, or in quotes if it is text")
	}
	return is
}

func (r *reader) scalar(n *yaml.Node) any {
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		yes, _ := strconv.ParseBool(strings.ToLower(n.Value))
		return yes
	case "!!int", "!!float":
		if r.octal(n) {
			return nil
		}
		var f float64
		if err := n.Decode(&f); err != nil || math.IsNaN(f) || math.IsInf(f, 0) || math.Abs(f) > exact && !strings.ContainsAny(n.Value, ".eE") {
			r.fault(n, fmt.Sprintf("options hold the number %s, which JSON cannot carry exactly", clip(n.Value)), "put it in quotes")
		}
		return f
	}
	return n.Value
}
