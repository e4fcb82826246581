package record

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// glance scans JSON in one pass, and detects values that are in their canonical form already, which is usual. It leaves
// unclear cases to the codec.
type glance struct {
	data  []byte
	at    int
	depth int
}

// looks is the result for a value.
type looks uint8

const (
	odd   looks = iota // it is invalid JSON, or nests too deeply
	valid              // it is valid JSON
	fit                // it is valid JSON in its canonical form
)

// maxDepth is the deepest nesting that is scanned here.
const maxDepth = 32

// plainScan is scan for valid JSON; otherwise it returns false.
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

// member scans a member of an event. It leaves names with escapes to the codec.
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

// next skips c, and reports whether it was next.
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

// gap skips white space within a value, which canonical forms do not have.
func (g *glance) gap(how looks) looks {
	if g.space() {
		return min(how, valid)
	}
	return how
}

// value scans a value.
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

// list scans an object or an array.
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

// name scans a name and its colon. In a canonical form names are sorted and unique. It leaves the order of non-ASCII names to
// the codec.
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

// ascii reports whether b is ASCII.
func ascii(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// text scans a string.
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

// skip skips bytes without a special meaning, eight at a time.
func (g *glance) skip() {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for g.at+8 <= len(g.data) {
		x := binary.LittleEndian.Uint64(g.data[g.at:])
		quote, slash := x^ones*'"', x^ones*'\\'
		// The top bit of a byte is set if the byte is below a space, a quote, a backslash, or not ASCII. Bytes above such
		// a byte may have it, too, so only the lowest one counts.
		if special := ((x - ones*' ') | (quote - ones) | (slash - ones) | x) & tops; special != 0 {
			g.at += bits.TrailingZeros64(special) / 8
			return
		}
		g.at += 8
	}
}

// escape scans the rest of an escape. It leaves the canonical form of \u to the codec.
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

// exact is the number of digits up to which every reader preserves an integer.
const exact = 15

// number scans a number. It leaves the canonical form of fractions to the codec.
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

// digits skips digits, and returns their number.
func (g *glance) digits() int {
	begin := g.at
	for g.at < len(g.data) && '0' <= g.data[g.at] && g.data[g.at] <= '9' {
		g.at++
	}
	return g.at - begin
}
