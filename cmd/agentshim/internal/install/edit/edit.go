// Package edit changes JSON files that people wrote. Unchanged parts keep their bytes, and
// therefore their order and formatting. New parts copy the formatting of their neighbours.
package edit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// Max is the size limit of a file. Configurations that people write are far smaller.
const Max = 4 << 20

// ErrComments says that the file has comments, so it is not JSON.
var ErrComments = errors.New("it has comments")

// ErrMark says that the file begins with a byte order mark.
var ErrMark = errors.New("it begins with a byte order mark")

// A Doc is a JSON object as text.
type Doc struct {
	text   []byte
	syntax Syntax
}

// Parse parses a file's content. An empty file is an empty object.
func Parse(text []byte) (*Doc, error) { return ParseAs(text, 0) }

// ParseAs is like Parse, for a reader that accepts more than JSON.
func ParseAs(text []byte, s Syntax) (*Doc, error) {
	if len(text) > Max {
		return nil, fmt.Errorf("it has more than %d bytes", Max)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	plain := s.plain(text)
	root, err := parse(plain)
	if err != nil {
		if commented(plain, err) {
			return nil, ErrComments
		}
		if bytes.HasPrefix(plain, []byte(byteOrderMark)) {
			return nil, ErrMark
		}
		return nil, fmt.Errorf("it is not valid JSON: %w", err)
	}
	if root.kind != '{' {
		return nil, fmt.Errorf("it is %s, but must be a JSON object", schema.KindName(root.kind))
	}
	return &Doc{text: slices.Clone(text), syntax: s}, nil
}

// commented reports whether the syntax error is at a comment.
func commented(text []byte, err error) bool {
	var s *jsontext.SyntacticError
	if !errors.As(err, &s) || s.ByteOffset < 0 || s.ByteOffset >= int64(len(text)) {
		return false
	}
	rest := text[s.ByteOffset:]
	return bytes.HasPrefix(rest, []byte("//")) || bytes.HasPrefix(rest, []byte("/*")) || bytes.HasPrefix(rest, []byte("#"))
}

// Text returns the current text of the document.
func (d *Doc) Text() []byte { return d.text }

// Get returns the value at a path of member names; nil: it does not exist.
func (d *Doc) Get(path ...string) jsontext.Value {
	if n := d.find(path); n != nil {
		return d.Plain()[n.start:n.end]
	}
	return nil
}

// Names returns the members of the object at a path, in order.
func (d *Doc) Names(path ...string) (names []string) {
	if n := d.find(path); n != nil {
		for _, m := range n.members {
			names = append(names, m.name)
		}
	}
	return names
}

// Elements returns the elements of the list at a path.
func (d *Doc) Elements(path ...string) (all []jsontext.Value) {
	if n := d.find(path); n != nil {
		plain := d.Plain()
		for _, e := range n.elements {
			all = append(all, plain[e.start:e.end])
		}
	}
	return all
}

// Set sets the member at a path, and creates missing objects in the path.
func (d *Doc) Set(v jsontext.Value, path ...string) error {
	at, depth := d.deepest(path)
	if depth == len(path) {
		d.replace(at, v)
		return nil
	}
	if at.kind != '{' {
		return fmt.Errorf("%s is %s, but must be an object", pathName(path[:depth]), schema.KindName(at.kind))
	}
	for _, name := range slices.Backward(path[depth+1:]) {
		v = object(name, v)
	}
	d.insert(at, object(path[depth], v))
	return nil
}

// Append adds an element to the list at a path, and creates the list if it is missing.
func (d *Doc) Append(v jsontext.Value, path ...string) error {
	at, depth := d.deepest(path)
	if depth < len(path) {
		return d.Set(slices.Concat([]byte("["), v, []byte("]")), path...)
	}
	if at.kind != '[' {
		return fmt.Errorf("%s is %s, but must be a list", pathName(path), schema.KindName(at.kind))
	}
	d.insert(at, v)
	return nil
}

// Put replaces an element of the list at a path. The list must exist.
func (d *Doc) Put(v jsontext.Value, i int, path ...string) { d.replace(d.find(path).elements[i], v) }

// Drop removes an element of the list at a path. The list must exist.
func (d *Doc) Drop(i int, path ...string) {
	list := d.find(path)
	spans := make([]span, 0, len(list.elements))
	for _, e := range list.elements {
		spans = append(spans, span{e.start, e.end})
	}
	d.cut(list, spans, i)
}

// Delete removes the member at a path, if it exists.
func (d *Doc) Delete(path ...string) {
	last := len(path) - 1
	owner := d.find(path[:last])
	if owner == nil {
		return
	}
	spans := make([]span, 0, len(owner.members))
	for _, m := range owner.members {
		spans = append(spans, span{m.start, m.value.end})
	}
	if i := slices.IndexFunc(owner.members, func(m member) bool { return m.name == path[last] }); i >= 0 {
		d.cut(owner, spans, i)
	}
}

// Equal reports whether two values are equal as JSON.
func Equal(a, b jsontext.Value) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	return a.Canonicalize() == nil && b.Canonicalize() == nil && bytes.Equal(a, b)
}

// Mask returns a text without comments, and with another word for all strings outside the kept values.
func Mask(text []byte, with string, keep func(path []string, v jsontext.Value) bool) []byte {
	d, err := ParseAs(text, Comments|Mark)
	if err != nil {
		return []byte(with + "\n")
	}
	d.text = d.Plain()
	var strings []span
	d.root().strings(nil, func(path []string, n *node) bool { return keep(path, d.text[n.start:n.end]) }, &strings)
	word, _ := jsontext.AppendQuote(nil, with)
	for _, s := range slices.Backward(strings) {
		d.splice(s, word)
	}
	return d.text
}

func pathName(path []string) string {
	if len(path) == 0 {
		return "the file"
	}
	var b bytes.Buffer
	for i, p := range path {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(p)
	}
	return b.String()
}

func object(name string, v jsontext.Value) jsontext.Value {
	return slices.Concat([]byte("{"), member{name: name}.quoted(), []byte(":"), v, []byte("}"))
}
