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

// An object is a JSON object of which parts can be looked at and replaced, while
// the rest stays the bytes that it is.
type object struct {
	raw     []byte
	members []member
}

// A member is a name and the place of its value.
type member struct {
	name    string
	at, end int
}

var errNoObject = errors.New("it is not a JSON object")

// readObject finds the members of an object that is all there is in raw.
func readObject(raw []byte) (object, error) {
	o := object{raw: raw}
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if dec.PeekKind() != '{' {
		return o, errNoObject
	}
	if _, err := dec.ReadToken(); err != nil {
		return o, err
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return o, err
		}
		m := member{name: name.String()}
		value, err := dec.ReadValue()
		if err != nil {
			return o, err
		}
		m.end = int(dec.InputOffset())
		m.at = m.end - len(value)
		o.members = append(o.members, m)
	}
	if _, err := dec.ReadToken(); err != nil {
		return o, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return o, errors.New("more text follows its end")
	}
	return o, nil
}

// get is the value of a name, the last one as most readers have it; nil: there is none.
func (o *object) get(name string) jsontext.Value {
	for _, m := range slices.Backward(o.members) {
		if m.name == name {
			return o.raw[m.at:m.end:m.end]
		}
	}
	return nil
}

// text is the value of a name if it is a string.
func (o *object) text(name string) string { return text(o.get(name)) }

func text(v jsontext.Value) (s string) {
	if v.Kind() != '"' || schema.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// inner is the object that a name has as its value; an empty one if it has none.
func (o *object) inner(name string) object {
	in, err := readObject(o.get(name))
	if err != nil {
		return object{}
	}
	return in
}

// clear reports whether everybody reads the same under these names: each stands
// there once at most, and nothing that some readers take for it.
func (o *object) clear(names ...string) error {
	for _, name := range names {
		n := 0
		for _, m := range o.members {
			if alike(m.name, name) {
				n++
			}
			if m.name != name && alike(m.name, name) {
				return fmt.Errorf("it has a member %.40q, which some readers take for %q", m.name, name)
			}
		}
		if n > 1 {
			return fmt.Errorf("it has %d members with the name %q", n, name)
		}
	}
	return nil
}

// with is the object with a value in the place of that of a name, or added at
// its end. Nobody reads another value there after that.
func (o *object) with(name string, value []byte) []byte {
	if o.clear(name) != nil {
		cleared, err := readObject(o.without(name))
		if err != nil {
			return o.raw
		}
		return cleared.with(name, value)
	}
	for _, m := range o.members {
		if m.name == name {
			return splice(o.raw, m.at, m.end, value)
		}
	}
	quoted, err := jsontext.AppendQuote(nil, name)
	if err != nil {
		return o.raw
	}
	quoted = append(append(quoted, ':'), value...)
	if len(o.members) == 0 {
		return splice([]byte("{}"), 1, 1, quoted)
	}
	at := o.members[len(o.members)-1].end
	return splice(o.raw, at, at, append([]byte{','}, quoted...))
}

// without is the object without some names.
func (o *object) without(names ...string) []byte {
	out := []byte{'{'}
	for _, m := range o.members {
		if containsAlike(names, m.name) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		quoted, err := jsontext.AppendQuote(out, m.name)
		if err != nil {
			continue // no reader takes it for anything that is asked for
		}
		out = append(append(quoted, ':'), o.raw[m.at:m.end]...)
	}
	return append(out, '}')
}

func containsAlike(names []string, name string) bool {
	for _, n := range names {
		if alike(n, name) {
			return true
		}
	}
	return false
}

// alike reports whether some readers take a name for the other: those that mind neither
// case nor dashes and underscores, as Go's second JSON package does where it is told to.
func alike(a, b string) bool { return strings.EqualFold(dashes.Replace(a), dashes.Replace(b)) }

var dashes = strings.NewReplacer("_", "", "-", "")

// splice is raw with something else between two places.
func splice(raw []byte, from, to int, with []byte) []byte {
	out := make([]byte, 0, len(raw)-(to-from)+len(with))
	out = append(out, raw[:from]...)
	out = append(out, with...)
	return append(out, raw[to:]...)
}

// readList finds the values of a list that is all there is in raw.
func readList(raw []byte) (values []jsontext.Value, err error) {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
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
	if _, err := dec.ReadToken(); err != nil {
		return nil, err
	}
	if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more text follows its end")
	}
	return values, nil
}
