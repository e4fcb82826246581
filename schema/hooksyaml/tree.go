package hooksyaml

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"
)

// tree checks rules for all values: aliases must not loop or expand too much, and values
// must not have types of their own. Afterwards aliases can be followed without a check.
func (r *reader) tree(root *yaml.Node) {
	t := &measure{reader: r, sizes: map[*yaml.Node]int{}}
	t.size(root)
	if t.extra > maxExpansion {
		r.fault(t.largest, fmt.Sprintf("the aliases of this file expand to more than %d values", maxExpansion), "write the values out, or use fewer aliases")
	}
}

// A measure counts values, following aliases.
type measure struct {
	*reader
	// sizes are the sizes of complete anchored values.
	sizes map[*yaml.Node]int
	// extra is how many values aliases stand for.
	extra int
	// largest is the alias with the most values.
	largest *yaml.Node
	most    int
}

// size counts the values of n. An alias comes after its anchor, so a target without a
// size contains the alias.
func (t *measure) size(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		size, ok := t.sizes[n.Alias]
		if !ok {
			t.fault(n, fmt.Sprintf("*%s contains itself", n.Value), "write the value out")
		}
		t.extra = min(t.extra+size, maxExpansion+1)
		if size > t.most {
			t.largest, t.most = n, size
		}
		return size
	}
	if !slices.Contains(tags, n.Tag) || n.Style&yaml.TaggedStyle != 0 && !harmless(n) {
		t.fault(n, fmt.Sprintf("the tag %s is not supported", n.Tag), "remove it, or put the whole value in quotes")
	}
	size := 1
	for _, c := range n.Content {
		size = min(size+t.size(c), maxExpansion+1)
	}
	if n.Anchor != "" {
		t.sizes[n] = size
	}
	return size
}

var tags = []string{"!!str", "!!map", "!!seq", "!!bool", "!!int", "!!null", "!!float", "!!timestamp", "!!merge"}

// harmless reports whether a tag is that of its value anyway, or that of text. Other tags
// could make a policy's value look absent.
func harmless(n *yaml.Node) bool {
	switch n.Kind {
	case yaml.MappingNode:
		return n.Tag == "!!map"
	case yaml.SequenceNode:
		return n.Tag == "!!seq"
	}
	return n.Tag == "!!str"
}

// deref follows an alias.
func deref(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// An entry is one key of a mapping, with its value.
type entry struct {
	key   string
	at    *yaml.Node
	value *yaml.Node
}

// isNull reports whether a key has no value.
func (e entry) isNull() bool { return e.value.Tag == "!!null" }

// mapping returns the entries of n, which faults call what. A repeated key is a fault,
// because it is ambiguous.
func (r *reader) mapping(n *yaml.Node, what, hint string) ([]entry, bool) {
	if n.Kind != yaml.MappingNode {
		r.fault(n, fmt.Sprintf("%s is %s; it must be a mapping", what, describe(n)), hint)
		return nil, false
	}
	entries := make([]entry, 0, len(n.Content)/2)
	lines := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		at := deref(n.Content[i])
		switch {
		case at.Tag == "!!merge":
			r.fault(at, "merge keys (<<) are not supported", "write the keys out")
			continue
		case at.Kind != yaml.ScalarNode || at.Tag != "!!str":
			r.fault(at, fmt.Sprintf("a key of %s is %s; keys are text", what, describe(at)), "put it in quotes if it is a name")
			continue
		}
		if line, ok := lines[at.Value]; ok {
			r.fault(at, fmt.Sprintf("the key %s appears twice; it is already on line %d", quote(at.Value), line), "keep one of them")
			continue
		}
		lines[at.Value] = at.Line
		entries = append(entries, entry{key: at.Value, at: at, value: deref(n.Content[i+1])})
	}
	return entries, true
}

// describe names the kind of n in a sentence.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!null":
		return "empty"
	case "!!bool":
		return "the boolean " + clip(n.Value)
	case "!!int", "!!float":
		return "the number " + clip(n.Value)
	case "!!timestamp":
		return "the date " + clip(n.Value)
	}
	return fmt.Sprintf("the text %s", quote(n.Value))
}

// clip shortens text that a message repeats, and makes it printable, so that it cannot
// control a terminal.
func clip(s string) string {
	const most = 60
	runes := []rune(printable(s))
	if len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return string(runes)
}

// quote puts s between quotes, as it is in the file.
func quote(s string) string { return `"` + clip(s) + `"` }

// printable replaces invisible characters.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\t' || unicode.IsPrint(c) {
			return c
		}
		return '·'
	}, s)
}
