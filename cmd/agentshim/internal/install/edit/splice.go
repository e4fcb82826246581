package edit

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const plainIndent = "  "

type span struct{ start, end int }

// root returns the tree of the text, which is always valid.
func (d *Doc) root() *node {
	n, err := parse(d.Plain())
	if err != nil {
		panic("the edited document is not valid JSON: " + err.Error())
	}
	return n
}

func (d *Doc) find(path []string) *node {
	n, depth := d.deepest(path)
	if depth < len(path) {
		return nil
	}
	return n
}

// deepest returns the last existing node in a path, and its depth.
func (d *Doc) deepest(path []string) (n *node, depth int) {
	n = d.root()
	for depth < len(path) {
		i := slices.IndexFunc(n.members, func(m member) bool { return m.name == path[depth] })
		if i < 0 {
			break
		}
		n, depth = n.members[i].value, depth+1
	}
	return n, depth
}

func (d *Doc) splice(s span, with []byte) {
	if bytes.Contains(d.text, []byte("\r\n")) {
		with = bytes.ReplaceAll(with, []byte("\n"), []byte("\r\n"))
	}
	d.text = slices.Concat(d.text[:s.start], with, d.text[s.end:])
}

func (d *Doc) replace(n *node, v jsontext.Value) {
	if !Equal(d.Plain()[n.start:n.end], v) {
		d.splice(span{n.start, n.end}, d.styled(v, d.lineIndent(n.start)))
	}
}

// insert adds an element at the end of a list, or the one member of the object v to an object.
func (d *Doc) insert(into *node, v jsontext.Value) {
	last := into.start + 1
	for _, m := range into.members {
		last = m.value.end
	}
	for _, e := range into.elements {
		last = e.end
	}
	empty := last == into.start+1
	first := d.Plain()[into.start+1 : into.end-1]
	if i := bytes.IndexFunc(first, func(r rune) bool { return !strings.ContainsRune(" \t\r\n", r) }); i >= 0 {
		first = first[:i]
	}
	outer := d.lineIndent(into.start)
	switch {
	case empty && d.extra(last, into.end-1):
		inside := outer + d.indent()
		d.splice(span{into.end - 1, into.end - 1}, slices.Concat([]byte("\n"+inside), d.inner(v, into.kind, inside), []byte("\n"+outer)))
	case empty && d.indent() == "":
		d.splice(span{last, into.end - 1}, d.inner(v, into.kind, outer))
	case empty:
		inside := outer + d.indent()
		d.splice(span{last, into.end - 1}, slices.Concat([]byte("\n"+inside), d.inner(v, into.kind, inside), []byte("\n"+outer)))
	case !bytes.Contains(first, []byte("\n")): // all on one line
		d.splice(span{last, last}, slices.Concat([]byte(", "), d.compact(v, into.kind)))
	default:
		inside := string(first[bytes.LastIndexByte(first, '\n')+1:])
		at := d.behind(last)
		d.splice(span{at, at}, slices.Concat([]byte("\n"+inside), d.inner(v, into.kind, inside)))
		d.splice(span{last, last}, []byte(","))
	}
}

// inner returns v as it is written in a list, or its one member as it is written in an object.
func (d *Doc) inner(v jsontext.Value, in jsontext.Kind, indent string) []byte {
	if in != '{' {
		return d.styled(v, indent)
	}
	root, err := parse(v)
	if err != nil || len(root.members) != 1 {
		panic("only one member can be inserted")
	}
	m := root.members[0]
	return slices.Concat(m.quoted(), []byte(": "), d.styled(v[m.value.start:m.value.end], indent))
}

func (d *Doc) compact(v jsontext.Value, in jsontext.Kind) []byte {
	v = slices.Clone(v)
	_ = v.Format(jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true))
	if in == '{' {
		return v[1 : len(v)-1]
	}
	return v
}

// styled returns v in the document's style, for a line with the given indentation.
func (d *Doc) styled(v jsontext.Value, indent string) []byte {
	step := d.indent()
	if step == "" {
		return d.compact(v, '[')
	}
	v = slices.Clone(v)
	_ = v.Indent(jsontext.WithIndentPrefix(indent), jsontext.WithIndent(step))
	return v
}

// indent returns one step of the document's indentation; empty: the document is on one line.
func (d *Doc) indent() string {
	root := d.root()
	if len(root.members) == 0 {
		return plainIndent
	}
	first := root.members[0].start
	if !bytes.Contains(d.text[root.start:first], []byte("\n")) {
		return ""
	}
	return cmp.Or(d.lineIndent(first), plainIndent)
}

// lineIndent returns the white space at the beginning of the line with a position.
func (d *Doc) lineIndent(at int) string {
	line := d.text[bytes.LastIndexByte(d.text[:at], '\n')+1 : at]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// cut removes one part of a container, with the comma beside it.
func (d *Doc) cut(from *node, parts []span, i int) {
	all := span{from.start + 1, from.end - 1}
	switch {
	case len(parts) == 1:
	case i == 0:
		all = span{parts[0].start, parts[1].start}
	default:
		all = span{parts[i-1].end, parts[i].end}
	}
	if !d.extra(all.start, parts[i].start) && !d.extra(parts[i].end, all.end) {
		d.splice(all, nil)
		return
	}
	// The comments around it must stay.
	comma := span{}
	plain := d.Plain()
	if i+1 < len(parts) {
		at := parts[i].end + bytes.IndexByte(plain[parts[i].end:], ',')
		comma = span{at, at + 1}
	} else if i > 0 {
		at := parts[i-1].end + bytes.IndexByte(plain[parts[i-1].end:], ',')
		comma = span{at, at + 1}
	}
	if comma.start > parts[i].start {
		d.splice(comma, nil)
		d.splice(parts[i], nil)
		return
	}
	d.splice(parts[i], nil)
	d.splice(comma, nil)
}
