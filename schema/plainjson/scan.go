package plainjson

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// A Form is what a scan found out about a value.
type Form uint8

// The forms, each stricter than the one before.
const (
	Broken    Form = iota // invalid JSON, or nested too deeply to tell
	Valid                 // valid JSON, in which names may occur twice
	Unique                // valid JSON without duplicate names
	Canonical             // unique names, in the canonical form of RFC 8785
)

const (
	// maxDepth is the deepest nesting that is scanned.
	maxDepth = 32
	// maxNames is how many names are compared with each other, in all objects around a place.
	maxNames = 48
)

// Members calls each for the members of an object, and reports whether data is one with plain names.
func Members(data []byte, each func(name, value []byte, form Form)) bool {
	s := &scanner{data: data}
	if s.space(); !s.next('{') {
		return false
	}
	if s.space(); s.next('}') {
		return true
	}
	for {
		name, ok := s.member()
		if !ok {
			return false
		}
		value, form := s.raw()
		if form == Broken {
			return false
		}
		each(name, value, form)
		if s.next('}') {
			return true
		}
		if !s.next(',') {
			return false
		}
		s.space()
	}
}

// scanner scans JSON in one pass. It leaves unclear cases to the codec.
type scanner struct {
	data  []byte
	at    int
	depth int
	// names are those of all objects around the place; the first known of them.
	names [maxNames]span
	known int
	// loose: the codec would write some of the text so far in another way.
	loose bool
}

// A span is where a name is.
type span struct{ from, to int32 }

// spelled returns the name of a span.
func (s *scanner) spelled(at span) []byte { return s.data[at.from:at.to] }

// member scans a name without escapes, and its colon.
func (s *scanner) member() (name []byte, ok bool) {
	begin := s.at
	if s.text() != Canonical {
		return nil, false
	}
	name = s.data[begin+1 : s.at-1]
	if s.space(); !s.next(':') || bytes.IndexByte(name, '\\') >= 0 {
		return nil, false
	}
	s.space()
	return name, true
}

// raw scans a value and the white space after it.
func (s *scanner) raw() ([]byte, Form) {
	begin := s.at
	form := s.value()
	value := s.data[begin:s.at:s.at]
	s.space()
	return value, form
}

// next skips c, and reports whether it was next.
func (s *scanner) next(c byte) bool {
	if s.at < len(s.data) && s.data[s.at] == c {
		s.at++
		return true
	}
	return false
}

// space skips white space, and reports whether there was any.
func (s *scanner) space() bool {
	begin := s.at
	for s.at < len(s.data) {
		if c := s.data[s.at]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			break
		}
		s.at++
	}
	return s.at > begin
}

// gap skips white space within a value, which canonical forms do not have.
func (s *scanner) gap(form Form) Form {
	if s.space() {
		s.loose = true
		return min(form, Unique)
	}
	return form
}

func (s *scanner) value() Form {
	if s.at >= len(s.data) {
		return Broken
	}
	switch c := s.data[s.at]; c {
	case '"':
		return s.text()
	case '{', '[':
		if s.depth++; s.depth > maxDepth {
			return Broken
		}
		known := s.known
		form := s.list(c == '{')
		s.depth--
		s.known = known
		return form
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

func (s *scanner) word(word string) Form {
	if !bytes.HasPrefix(s.data[s.at:], []byte(word)) {
		return Broken
	}
	s.at += len(word)
	return Canonical
}

// list scans an object or an array.
func (s *scanner) list(object bool) Form {
	end := byte(']')
	if object {
		end = '}'
	}
	s.at++
	form := s.gap(Canonical)
	if s.next(end) {
		return form
	}
	first, sorted := s.known, true
	for {
		if object {
			form = min(form, s.name(first, &sorted))
		}
		if form == Broken {
			return Broken
		}
		form = s.gap(min(form, s.value()))
		switch {
		case form == Broken:
			return Broken
		case s.next(end):
			return form
		case !s.next(','):
			return Broken
		}
		form = s.gap(form)
	}
}

// name scans a name and its colon, and compares it with the names of the same object, which begin
// at first. If they are sorted, it is enough to compare it with the last one.
func (s *scanner) name(first int, sorted *bool) Form {
	begin := s.at
	form := s.text()
	if form == Broken {
		return Broken
	}
	name := s.data[begin+1 : s.at-1]
	switch {
	case form != Canonical, s.known == maxNames, bytes.IndexByte(name, '\\') >= 0:
		form = Valid // two spellings may be one name
	case !*sorted || s.known > first && bytes.Compare(s.spelled(s.names[s.known-1]), name) >= 0:
		form, *sorted = Unique, false
		for _, other := range s.names[first:s.known] {
			if bytes.Equal(s.spelled(other), name) {
				form = Valid
			}
		}
	case !ASCII(name): // their order is that of UTF-16
		form = Unique
	}
	if s.known < maxNames {
		s.names[s.known] = span{int32(begin + 1), int32(s.at - 1)}
		s.known++
	}
	if form = s.gap(form); !s.next(':') {
		return Broken
	}
	return s.gap(form)
}

// ASCII reports whether b is ASCII.
func ASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// text scans a string. One that is not valid UTF-8 has the form Unique.
func (s *scanner) text() Form {
	if !s.next('"') {
		return Broken
	}
	begin, form, wide := s.at, Canonical, false
	for {
		s.skip()
		if s.at >= len(s.data) {
			return Broken
		}
		c := s.data[s.at]
		s.at++
		switch {
		case c == '"':
			if wide && !utf8.Valid(s.data[begin:s.at-1]) {
				form = min(form, Unique)
			}
			s.loose = s.loose || form != Canonical
			return form
		case c == '\\':
			if form = min(form, s.escape()); form == Broken {
				return Broken
			}
		case c < ' ':
			return Broken
		case c >= utf8.RuneSelf:
			wide = true
		}
	}
}

// skip skips bytes without a special meaning, eight at a time.
func (s *scanner) skip() {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for s.at+8 <= len(s.data) {
		x := binary.LittleEndian.Uint64(s.data[s.at:])
		quote, slash := x^ones*'"', x^ones*'\\'
		// The top bit of a byte is set if the byte is below a space, a quote, a backslash, or not ASCII. Bytes above such
		// a byte may have it, too, so only the lowest one counts.
		if special := ((x - ones*' ') | (quote - ones) | (slash - ones) | x) & tops; special != 0 {
			s.at += bits.TrailingZeros64(special) / 8
			return
		}
		s.at += 8
	}
}

// escape scans the rest of an escape. It leaves the canonical form of \u to the codec.
func (s *scanner) escape() Form {
	if s.at >= len(s.data) {
		return Broken
	}
	c := s.data[s.at]
	s.at++
	switch c {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		return Canonical
	case '/':
		return Unique
	case 'u':
		for range 4 {
			if s.at >= len(s.data) || !hexadecimal(s.data[s.at]) {
				return Broken
			}
			s.at++
		}
		return Unique
	}
	return Broken
}

func hexadecimal(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// exact is the number of digits up to which every reader preserves an integer.
const exact = 15

// number scans a number. It leaves the canonical form of fractions to the codec.
func (s *scanner) number() Form {
	minus := s.next('-')
	begin := s.at
	n := s.digits()
	if n == 0 || n > 1 && s.data[begin] == '0' {
		return Broken
	}
	form := Canonical
	if n > exact || minus && s.data[begin] == '0' {
		form = Unique
	}
	if s.next('.') {
		if form = Unique; s.digits() == 0 {
			return Broken
		}
	}
	if s.next('e') || s.next('E') {
		if form = Unique; !s.next('+') {
			s.next('-')
		}
		if s.digits() == 0 {
			return Broken
		}
	}
	return form
}

// digits skips digits, and returns their number.
func (s *scanner) digits() int {
	begin := s.at
	for s.at < len(s.data) && '0' <= s.data[s.at] && s.data[s.at] <= '9' {
		s.at++
	}
	return s.at - begin
}
