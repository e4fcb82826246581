package plainjson

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"time"
	"unsafe"

	"github.com/go-json-experiment/json/jsontext"
)

// maxShared limits the messages whose values share one copy of the text. A value of a larger one has its own copy,
// because it would keep the whole text in memory.
const maxShared = 16 << 10

// Read reads data into v, and reports whether it is plain. Otherwise v is unchanged, except for
// the memory of its lists.
func (c *Codec[T]) Read(data []byte, v *T) bool {
	if len(data) == 0 || data[0] != '{' {
		return false
	}
	r := &reader{scanner: scanner{data: data}}
	if r.shared = len(data) <= maxShared; r.shared {
		r.data = bytes.Clone(data)
	}
	before := *v
	if r.object(c.object, unsafe.Pointer(v)) {
		if r.space(); r.at == len(data) {
			return true
		}
	}
	*v = before
	return false
}

// reader reads values whose table is known.
type reader struct {
	scanner
	shared bool // values are parts of data
}

func (r *reader) object(o *object, p unsafe.Pointer) bool {
	if !r.next('{') {
		return false
	}
	if r.space(); r.next('}') {
		return true
	}
	seen, i := uint64(0), -1
	for {
		if i = r.nextMember(o, i+1); i < 0 || seen&(1<<i) != 0 {
			return false
		}
		seen |= 1 << i
		if m := &o.members[i]; !r.read(m, m.in(p)) {
			return false
		}
		if r.space(); r.next('}') {
			return true
		}
		if !r.next(',') {
			return false
		}
		r.space()
	}
}

// nextMember reads a name and its colon, and returns the index of the member; -1: there is none. Members usually come
// in the order of the table and without white space, so it compares those from expected on first.
func (r *reader) nextMember(o *object, expected int) int {
	for i := expected; i < len(o.members); i++ {
		if begin := o.members[i].begin; r.at+len(begin) <= len(r.data) && string(r.data[r.at:r.at+len(begin)]) == begin {
			r.at += len(begin)
			r.space()
			return i
		}
	}
	name, ok := r.member()
	if !ok {
		return -1
	}
	return slices.IndexFunc(o.members, func(m member) bool { return m.name == string(name) })
}

// read reads a value into the place p.
func (r *reader) read(m *member, p unsafe.Pointer) (ok bool) {
	switch m.kind {
	case text:
		*(*string)(p), ok = r.quoted()
	case mark:
		*(*bool)(p) = r.at < len(r.data) && r.data[r.at] == 't'
		ok = r.word("true") != Broken || r.word("false") != Broken
	case integer:
		var n uint64
		n, ok = r.natural()
		*(*int)(p), ok = int(n), ok && n <= math.MaxInt32
	case counter:
		*(*uint64)(p), ok = r.natural()
	case duration:
		s, is := r.quoted()
		d, err := time.ParseDuration(s)
		*(*time.Duration)(p), ok = d, is && err == nil
	case moment:
		s, is := r.quoted()
		ok = is && (*time.Time)(p).UnmarshalText([]byte(s)) == nil
	case raw:
		value, form := r.raw()
		if !r.shared {
			value = bytes.Clone(value)
		}
		*(*jsontext.Value)(p), ok = value, form >= Unique
	case labels:
		ok = r.labels((*map[string]string)(p))
	case part:
		ok = r.object(m.of, p)
	case texts, parts:
		ok = r.list(m, p)
	}
	return ok
}

// quoted reads a string.
func (r *reader) quoted() (string, bool) {
	begin := r.at
	form := r.text()
	if form == Broken {
		return "", false
	}
	value := r.data[begin:r.at]
	if form != Canonical || bytes.IndexByte(value, '\\') >= 0 {
		s, err := jsontext.AppendUnquote(nil, value)
		return string(s), err == nil
	}
	if value = value[1 : len(value)-1]; r.shared {
		return unsafe.String(unsafe.SliceData(value), len(value)), true // nobody changes this part
	}
	return string(value), true
}

// natural reads up to eighteen digits.
func (r *reader) natural() (n uint64, ok bool) {
	begin := r.at
	digits := r.digits()
	for _, c := range r.data[begin:r.at] {
		n = 10*n + uint64(c-'0')
	}
	return n, digits == 1 || digits > 1 && digits <= 18 && r.data[begin] != '0'
}

// list reads a list that is not empty into the one at p, and into its memory if there is enough.
func (r *reader) list(m *member, p unsafe.Pointer) bool {
	if !r.next('[') {
		return false
	}
	list := reflect.NewAt(m.typ, p).Elem()
	list.SetLen(0)
	for n := 0; ; n++ {
		if n == list.Cap() {
			list.Grow(max(n, 1+bytes.Count(r.data[r.at:], []byte("},{"))))
		}
		list.SetLen(n + 1)
		list.Index(n).SetZero()
		item := unsafe.Add(list.UnsafePointer(), uintptr(n)*m.size)
		var ok bool
		if r.space(); m.kind == texts {
			*(*string)(item), ok = r.quoted()
		} else {
			ok = r.object(m.of, item)
		}
		if !ok {
			return false
		}
		if r.space(); r.next(']') {
			return true
		}
		if !r.next(',') {
			return false
		}
	}
}

// labels reads an object of strings into a map that is nil.
func (r *reader) labels(into *map[string]string) bool {
	if *into != nil || !r.next('{') {
		return false
	}
	all := map[string]string{}
	*into = all
	if r.space(); r.next('}') {
		return true
	}
	for {
		name, ok := r.member()
		if !ok {
			return false
		}
		key := string(name)
		if _, twice := all[key]; twice {
			return false
		}
		if all[key], ok = r.quoted(); !ok {
			return false
		}
		if r.space(); r.next('}') {
			return true
		}
		if !r.next(',') {
			return false
		}
		r.space()
	}
}
