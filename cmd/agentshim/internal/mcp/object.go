package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// An object is a JSON object whose members can be replaced. All other bytes stay as they are.
type object struct {
	raw     []byte
	members []member
}

// A member is the decoded name of a member and the offsets of its value in object.raw.
type member struct {
	name       string
	start, end int
}

var errNotObject = errors.New("it is not a JSON object")

// newDecoder accepts all that lenient readers accept, so that the proxy sees what they see.
func newDecoder(raw []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// readEnd reads the last token of an object or a list, after which no text may follow.
func readEnd(dec *jsontext.Decoder) error {
	if _, err := dec.ReadToken(); err != nil {
		return err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("more text follows its end")
	}
	return nil
}

// readObject reads one JSON object. After an error, it has the members before it.
func readObject(raw []byte) (object, error) {
	o := object{raw: raw}
	dec := newDecoder(raw)
	if dec.PeekKind() != '{' {
		return o, errNotObject
	}
	if _, err := dec.ReadToken(); err != nil {
		return o, err
	}
	for dec.PeekKind() != '}' {
		token, err := dec.ReadToken()
		if err != nil {
			return o, err
		}
		name := token.String()
		value, err := dec.ReadValue()
		if err != nil {
			return o, err
		}
		end := int(dec.InputOffset())
		o.members = append(o.members, member{name, end - len(value), end})
	}
	return o, readEnd(dec)
}

// readList returns the values of raw, which must be one JSON list.
func readList(raw []byte) (values []jsontext.Value, err error) {
	dec := newDecoder(raw)
	if dec.PeekKind() != '[' {
		return nil, errors.New("it is not a JSON list")
	}
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	for dec.PeekKind() != ']' {
		v, err := dec.ReadValue()
		if err != nil {
			return nil, err
		}
		end := int(dec.InputOffset())
		values = append(values, raw[end-len(v):end:end])
	}
	return values, readEnd(dec)
}

func listOf(values []jsontext.Value) []byte {
	out := []byte{'['}
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}

func (o *object) value(m member) jsontext.Value { return o.raw[m.start:m.end:m.end] }

// get returns the value of the last member with a name, as most readers do; nil: there is none.
func (o *object) get(name string) jsontext.Value {
	for _, m := range slices.Backward(o.members) {
		if m.name == name {
			return o.value(m)
		}
	}
	return nil
}

// text returns the value of a member if it is a string, else "".
func (o *object) text(name string) string { return text(o.get(name)) }

func text(v jsontext.Value) (s string) {
	if v.Kind() != '"' || schema.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// child returns the value of a member if it is an object, else an empty object.
func (o *object) child(name string) object {
	c, err := readObject(o.get(name))
	if err != nil {
		return object{}
	}
	return c
}

// checkUnique returns an error if a name, or a similar one, occurs twice: readers could find other values.
func (o *object) checkUnique(names ...string) error {
	for _, name := range names {
		n := 0
		for _, m := range o.members {
			switch {
			case m.name == name:
				n++
			case similar(m.name, name):
				return fmt.Errorf("it has a member %.40q, which some readers take for %q", m.name, name)
			}
		}
		if n > 1 {
			return fmt.Errorf("it has %d members with the name %q", n, name)
		}
	}
	return nil
}

// with returns the object with one member of a name, and no similar ones that readers could find.
func (o *object) with(name string, value []byte) []byte {
	if o.checkUnique(name) != nil {
		unique, err := readObject(o.without(name))
		if err != nil {
			return o.raw
		}
		return unique.with(name, value)
	}
	for _, m := range o.members {
		if m.name == name {
			return slices.Concat(o.raw[:m.start], value, o.raw[m.end:])
		}
	}
	added, err := jsontext.AppendQuote(nil, name)
	if err != nil {
		return o.raw
	}
	added = append(append(added, ':'), value...)
	if len(o.members) == 0 {
		return slices.Concat([]byte{'{'}, added, []byte{'}'})
	}
	end := o.members[len(o.members)-1].end
	return slices.Concat(o.raw[:end], []byte{','}, added, o.raw[end:])
}

// without returns the object without the members that have these or similar names.
func (o *object) without(names ...string) []byte {
	out := []byte{'{'}
	for _, m := range o.members {
		if slices.ContainsFunc(names, func(name string) bool { return similar(name, m.name) }) {
			continue
		}
		quoted, err := jsontext.AppendQuote(nil, m.name)
		if err != nil {
			continue // not UTF-8, so no reader takes it for a name that matters
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoted...), ':'), o.value(m)...)
	}
	return append(out, '}')
}

// similar reports whether readers that ignore case, dashes and underscores take one name for the other.
func similar(a, b string) bool { return strings.EqualFold(withoutDashes(a), withoutDashes(b)) }

func withoutDashes(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' {
			return -1
		}
		return r
	}, s)
}
