package record

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// glance looks over JSON in one go, and sees on its way what is in its canonical form
// already, as what most runtimes send is. What it is not sure of is left to the codec.
type glance struct {
	data  []byte
	at    int
	depth int
}

// looks is what a look at a value found.
type looks uint8

const (
	odd   looks = iota // it is no JSON, or nests too deep
	valid              // it is JSON, in a canonical form or not
	fit                // it is in its canonical form
)

// maxDepth is how deep values may lie in each other to be looked at here.
const maxDepth = 32

// plainScan is scan for what is JSON throughout; otherwise it reports false.
func plainScan(data []byte) (b body, ok bool) {
	g := &glance{data: data}
	if g.space(); !g.next('{') {
		return body{}, false
	}
	if g.space(); g.next('}') {
		return b, true
	}
	for {
		if !g.member(&b) {
			return body{}, false
		}
		if g.next('}') {
			return b, true
		}
		if !g.next(',') {
			return body{}, false
		}
		g.space()
	}
}

// member reads a member of an event. Names with escapes are left to the codec.
func (g *glance) member(b *body) bool {
	begin := g.at
	if g.text() != fit {
		return false
	}
	name := g.data[begin+1 : g.at-1]
	if g.space(); !g.next(':') {
		return false
	}
	g.space()
	begin = g.at
	how := g.value()
	value := g.data[begin:g.at:g.at]
	g.space()
	if at := b.member(string(name)); at != nil && *at == nil && how != odd && value[0] != 'n' {
		*at = value
		b.fitInput = b.fitInput || at == &b.input && how == fit
		b.fitPrompt = b.fitPrompt || at == &b.prompt && how == fit
	}
	return how != odd
}

// next goes on if c is next.
func (g *glance) next(c byte) bool {
	if g.at < len(g.data) && g.data[g.at] == c {
		g.at++
		return true
	}
	return false
}

// space skips white space, and reports whether there was any.
func (g *glance) space() bool {
	begin := g.at
	for g.at < len(g.data) {
		if c := g.data[g.at]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			break
		}
		g.at++
	}
	return g.at > begin
}

// gap is space within a value, which has none in its canonical form.
func (g *glance) gap(how looks) looks {
	if g.space() {
		return min(how, valid)
	}
	return how
}

// value reads a value.
func (g *glance) value() looks {
	if g.at >= len(g.data) {
		return odd
	}
	switch c := g.data[g.at]; c {
	case '"':
		return g.text()
	case '{', '[':
		if g.depth++; g.depth > maxDepth {
			return odd
		}
		how := g.list(c == '{')
		g.depth--
		return how
	case 't':
		return g.word("true")
	case 'f':
		return g.word("false")
	case 'n':
		return g.word("null")
	default:
		return g.number()
	}
}

func (g *glance) word(s string) looks {
	if !bytes.HasPrefix(g.data[g.at:], []byte(s)) {
		return odd
	}
	g.at += len(s)
	return fit
}

// list reads an object or an array.
func (g *glance) list(object bool) looks {
	end := byte(']')
	if object {
		end = '}'
	}
	g.at++
	how := g.gap(fit)
	if g.next(end) {
		return how
	}
	var last []byte
	for {
		if object {
			how = min(how, g.name(&last))
		}
		if how == odd {
			return odd
		}
		how = g.gap(min(how, g.value()))
		switch {
		case how == odd:
			return odd
		case g.next(end):
			return how
		case !g.next(','):
			return odd
		}
		how = g.gap(how)
	}
}

// name reads a name and what parts it from its value. In a canonical form names
// are sorted, none is there twice, and the order of those that are not ASCII is the
// codec's business.
func (g *glance) name(last *[]byte) looks {
	begin := g.at
	how := g.text()
	if how == odd {
		return odd
	}
	name := g.data[begin+1 : g.at-1]
	if !ascii(name) || *last != nil && bytes.Compare(*last, name) >= 0 || bytes.IndexByte(name, '\\') >= 0 {
		how = valid
	}
	*last = name
	if how = g.gap(how); !g.next(':') {
		return odd
	}
	return g.gap(how)
}

// ascii reports whether b has no letters beyond those.
func ascii(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// text reads a string.
func (g *glance) text() looks {
	if !g.next('"') {
		return odd
	}
	begin, how, wide := g.at, fit, false
	for {
		g.skip()
		if g.at >= len(g.data) {
			return odd
		}
		c := g.data[g.at]
		g.at++
		switch {
		case c == '"':
			if wide && !utf8.Valid(g.data[begin:g.at-1]) {
				how = min(how, valid)
			}
			return how
		case c == '\\':
			if how = min(how, g.escape()); how == odd {
				return odd
			}
		case c < ' ':
			return odd
		case c >= utf8.RuneSelf:
			wide = true
		}
	}
}

// skip goes over what stands for itself, eight bytes at a time.
func (g *glance) skip() {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for g.at+8 <= len(g.data) {
		x := binary.LittleEndian.Uint64(g.data[g.at:])
		quote, slash := x^ones*'"', x^ones*'\\'
		// The top bit of a byte is set if it is less than a space, one of the two, or no ASCII.
		// Bytes above such a one may have it, too: the lowest counts.
		if special := ((x - ones*' ') | (quote - ones) | (slash - ones) | x) & tops; special != 0 {
			g.at += bits.TrailingZeros64(special) / 8
			return
		}
		g.at += 8
	}
}

// escape reads what follows a backslash. Of a letter's number the canonical form is
// the codec's business.
func (g *glance) escape() looks {
	if g.at >= len(g.data) {
		return odd
	}
	c := g.data[g.at]
	g.at++
	switch c {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		return fit
	case '/':
		return valid
	case 'u':
		for range 4 {
			if g.at >= len(g.data) || !hexadecimal(g.data[g.at]) {
				return odd
			}
			g.at++
		}
		return valid
	}
	return odd
}

func hexadecimal(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// exact is how many digits a whole number may have to be surely one that every reader
// reads as it is.
const exact = 15

// number reads a number. Whole ones are canonical, of others the codec knows.
func (g *glance) number() looks {
	minus := g.next('-')
	begin := g.at
	n := g.digits()
	switch {
	case n == 0, n > 1 && g.data[begin] == '0':
		return odd
	}
	how := fit
	if n > exact || minus && g.data[begin] == '0' {
		how = valid
	}
	if g.next('.') {
		if how = valid; g.digits() == 0 {
			return odd
		}
	}
	if g.next('e') || g.next('E') {
		if how = valid; !g.next('+') {
			g.next('-')
		}
		if g.digits() == 0 {
			return odd
		}
	}
	return how
}

// digits reads digits, and returns how many.
func (g *glance) digits() int {
	begin := g.at
	for g.at < len(g.data) && '0' <= g.data[g.at] && g.data[g.at] <= '9' {
		g.at++
	}
	return g.at - begin
}
