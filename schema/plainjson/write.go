package plainjson

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// Append appends the JSON of v to b, and reports whether v is plain. If it is not, the bytes after b
// are unfinished.
func (c *Codec[T]) Append(b []byte, v *T) ([]byte, bool) {
	p, size := unsafe.Pointer(v), usual
	for i := range c.object.members {
		switch m := &c.object.members[i]; m.kind {
		case texts, parts:
			size += perItem * len(items(m.in(p)))
		case raw:
			size += len(*(*jsontext.Value)(m.in(p)))
		}
	}
	return c.object.append(slices.Grow(b, size), p)
}

// usual is about the size of a message without lists, perItem that of an item of a list.
const usual, perItem = 128, 160

// items returns the list at p, of whatever type its items are.
func items(p unsafe.Pointer) []struct{} { return *(*[]struct{})(p) }

func (o *object) append(b []byte, p unsafe.Pointer) ([]byte, bool) {
	b = append(b, '{')
	begun := len(b)
	for i := range o.members {
		m := &o.members[i]
		if !m.always && m.absent(m.in(p)) {
			continue
		}
		if len(b) > begun {
			b = append(b, ',')
		}
		var ok bool
		if b, ok = m.append(append(b, m.begin...), m.in(p)); !ok {
			return b, false
		}
	}
	return append(b, '}'), true
}

// absent reports whether the value at p is zero.
func (m *member) absent(p unsafe.Pointer) bool {
	switch m.kind {
	case text:
		return *(*string)(p) == ""
	case mark:
		return !*(*bool)(p)
	case integer:
		return *(*int)(p) == 0
	case counter:
		return *(*uint64)(p) == 0
	case duration:
		return *(*time.Duration)(p) == 0
	case raw, labels, texts, parts, held:
		return *(*unsafe.Pointer)(p) == nil
	case part:
		for i := range m.of.members {
			if inner := &m.of.members[i]; !inner.absent(inner.in(p)) {
				return false
			}
		}
		return true
	}
	return reflect.NewAt(m.typ, p).Elem().IsZero()
}

// append appends the value at p.
func (m *member) append(b []byte, p unsafe.Pointer) ([]byte, bool) {
	switch m.kind {
	case text:
		return appendText(b, *(*string)(p))
	case mark:
		return strconv.AppendBool(b, *(*bool)(p)), true
	case integer:
		return strconv.AppendInt(b, int64(*(*int)(p)), 10), true
	case counter:
		return strconv.AppendUint(b, *(*uint64)(p), 10), true
	case duration:
		return append(append(append(b, '"'), (*(*time.Duration)(p)).String()...), '"'), true
	case moment:
		return appendTime(b, *(*time.Time)(p))
	case part:
		return m.of.append(b, p)
	case raw:
		return appendRaw(b, *(*jsontext.Value)(p))
	case labels:
		return appendLabels(b, *(*map[string]string)(p))
	case texts, parts:
		return m.appendList(b, p)
	}
	return b, false
}

// appendRaw appends a value that the codec would write as it is.
func appendRaw(b []byte, v jsontext.Value) ([]byte, bool) {
	s := scanner{data: v}
	if form := s.value(); form < Unique || s.loose || s.at < len(v) {
		return b, false
	}
	return append(b, v...), true
}

// appendLabels appends a map in the order of its names.
func appendLabels(b []byte, labels map[string]string) (_ []byte, ok bool) {
	b = append(b, '{')
	for i, name := range slices.Sorted(maps.Keys(labels)) {
		if i > 0 {
			b = append(b, ',')
		}
		if b, ok = appendText(b, name); !ok {
			return b, false
		}
		if b, ok = appendText(append(b, ':'), labels[name]); !ok {
			return b, false
		}
	}
	return append(b, '}'), true
}

func (m *member) appendList(b []byte, p unsafe.Pointer) ([]byte, bool) {
	b = append(b, '[')
	list := items(p)
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		item := unsafe.Add(unsafe.Pointer(unsafe.SliceData(list)), uintptr(i)*m.size)
		var ok bool
		if m.kind == texts {
			b, ok = appendText(b, *(*string)(item))
		} else {
			b, ok = m.of.append(b, item)
		}
		if !ok {
			return b, false
		}
	}
	return append(b, ']'), true
}

// appendText appends a string that needs no escapes: ASCII without quotes, backslashes and
// control characters.
func appendText(b []byte, s string) ([]byte, bool) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return b, false
		}
	}
	return append(append(append(b, '"'), s...), '"'), true
}

// appendTime appends a time in UTC. Other zones, and years that the codec rejects, are left to it.
func appendTime(b []byte, t time.Time) ([]byte, bool) {
	if year := t.Year(); t.Location() != time.UTC || year < 0 || year > 9999 {
		return b, false
	}
	return append(t.AppendFormat(append(b, '"'), time.RFC3339Nano), '"'), true
}
