package edit

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

type node struct {
	kind       jsontext.Kind
	start, end int
	members    []member
	elements   []*node
}

// A member is a member of an object; start is the position of its name.
type member struct {
	name  string
	start int
	value *node
}

// strings collects the spans of strings, except those in values that keep selects.
func (n *node) strings(path []string, keep func([]string, *node) bool, all *[]span) {
	switch {
	case keep(path, n):
	case n.kind == '"':
		*all = append(*all, span{n.start, n.end})
	default:
		for _, m := range n.members {
			m.value.strings(append(slices.Clip(path), m.name), keep, all)
		}
		for _, e := range n.elements {
			e.strings(path, keep, all)
		}
	}
}

func (m member) quoted() []byte {
	b, err := jsontext.AppendQuote(nil, m.name)
	if err != nil {
		return []byte(`""`) // all names are constants of agentshim in valid UTF-8
	}
	return b
}

// parse returns the tree of a text with one JSON value.
func parse(text []byte) (*node, error) {
	p := parser{jsontext.NewDecoder(bytes.NewBuffer(bytes.Clone(text)))}
	root, err := p.value()
	if err != nil {
		return nil, err
	}
	if _, err := p.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, trailing(err)
	}
	return root, nil
}

type parser struct{ *jsontext.Decoder }

func (p parser) at() int { return int(p.InputOffset()) }

func (p parser) value() (*node, error) {
	n := &node{kind: p.PeekKind()}
	if n.kind != '{' && n.kind != '[' {
		v, err := p.ReadValue()
		n.end = p.at()
		n.start = n.end - len(v)
		return n, err
	}
	if _, err := p.ReadToken(); err != nil {
		return nil, err
	}
	n.start = p.at() - 1
	for p.PeekKind() != '}' && p.PeekKind() != ']' {
		if err := p.child(n); err != nil {
			return nil, err
		}
	}
	_, err := p.ReadToken()
	n.end = p.at()
	return n, err
}

func (p parser) child(n *node) error {
	var m member
	if n.kind == '{' {
		quoted, err := p.ReadValue()
		if err != nil {
			return err
		}
		m.start = p.at() - len(quoted)
		name, err := jsontext.AppendUnquote(nil, quoted)
		if err != nil {
			return err
		}
		m.name = string(name)
	}
	v, err := p.value()
	if err != nil {
		return err
	}
	if m.value = v; n.kind == '{' {
		n.members = append(n.members, m)
	} else {
		n.elements = append(n.elements, v)
	}
	return nil
}

func trailing(err error) error {
	if err == nil {
		return errors.New("more text follows its end")
	}
	return err
}
