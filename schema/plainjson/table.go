package plainjson

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Codec writes and reads plain values of type T.
type Codec[T any] struct{ object *object }

// An object is the table of a struct: its members in order.
type object struct{ members []member }

// A member is a row of the table.
type member struct {
	name  string
	begin string // its name as JSON, with the colon
	// always: it is written even if it is zero.
	always bool
	kind   kind
	typ    reflect.Type
	offset uintptr // of the field in the struct
	of     *object // the struct, or that of a list's items
	size   uintptr // of a list's item
}

// in returns the place of the member in the struct at p. Access by offsets takes a fraction of the time
// of package reflect, and the table knows the types.
func (m *member) in(p unsafe.Pointer) unsafe.Pointer { return unsafe.Add(p, m.offset) }

// kind says how a member is written and read.
type kind uint8

const (
	foreign  kind = iota // any other type; plain only if it is zero
	held                 // a list, map or pointer of any other type; plain only if it is nil
	text                 // a string
	mark                 // a bool
	integer              // an int
	counter              // a uint64
	duration             // a string in the form of time.Duration
	moment               // a time
	raw                  // JSON of any form; written if the codec writes it unchanged
	labels               // a map of strings
	texts                // a list of strings
	part                 // a struct
	parts                // a list of structs
)

// Of makes the codec of a struct. It panics if a member has an unknown option. A struct with
// methods for JSON is foreign, except for those listed in trusted, whose methods concern unknown members only.
func Of[T any](trusted ...reflect.Type) *Codec[T] {
	return &Codec[T]{objectOf(reflect.TypeFor[T](), trusted)}
}

func objectOf(t reflect.Type, trusted []reflect.Type) *object {
	o := &object{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name == "" || options != "" && options != "omitzero" {
			panic(fmt.Sprintf("plainjson: the member %s of %s has a tag of an unknown form", f.Name, t))
		}
		m := member{name: name, begin: `"` + name + `":`, always: options == "", typ: f.Type, offset: f.Offset}
		if m.kind, m.of = kindOf(f.Type, trusted); m.kind == texts || m.kind == parts {
			m.size = f.Type.Elem().Size()
		}
		o.members = append(o.members, m)
	}
	if len(o.members) > maxMembers {
		panic(fmt.Sprintf("plainjson: %s has more than %d members", t, maxMembers))
	}
	return o
}

// maxMembers is how many bits a reader has for the members that it has seen.
const maxMembers = 64

func kindOf(t reflect.Type, trusted []reflect.Type) (kind, *object) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return moment, nil
	case t == reflect.TypeFor[jsontext.Value]():
		return raw, nil
	case t == reflect.TypeFor[map[string]string]():
		return labels, nil
	case t.Kind() == reflect.Int64 && t.Implements(reflect.TypeFor[interface{ Std() time.Duration }]()):
		return duration, nil
	}
	if hasMethods(t) && !slices.Contains(trusted, t) {
		return foreign, nil
	}
	switch t.Kind() {
	case reflect.String:
		return text, nil
	case reflect.Bool:
		return mark, nil
	case reflect.Int:
		return integer, nil
	case reflect.Uint64:
		return counter, nil
	case reflect.Struct:
		return part, objectOf(t, trusted)
	case reflect.Slice:
		switch k, of := kindOf(t.Elem(), trusted); k {
		case text:
			return texts, nil
		case part:
			return parts, of
		}
		return held, nil
	case reflect.Map, reflect.Pointer:
		return held, nil
	}
	return foreign, nil
}

// hasMethods reports whether the codec would call methods of a type.
func hasMethods(t reflect.Type) bool {
	return slices.ContainsFunc([]reflect.Type{
		reflect.TypeFor[json.MarshalerTo](), reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextAppender](), reflect.TypeFor[encoding.TextMarshaler](),
		reflect.TypeFor[json.UnmarshalerFrom](), reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	}, reflect.PointerTo(t).Implements)
}
