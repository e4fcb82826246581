package match

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxClass limits the characters of a set that mixes ranges and characters. The glob
// library supports only one of both, so they are listed.
const maxClass = 4096

// class reads a set. As in the shell, a ] at the start is a literal, and so is a - that
// is not between two characters.
func (p *parser) class() error {
	body, not, size, err := p.bounds()
	if err != nil {
		return err
	}
	if err := p.regexClass(body, not); err != nil {
		return err
	}
	ranges, err := p.ranges([]rune(body))
	if err != nil {
		return err
	}
	if !not && len(ranges) == 1 && ranges[0].lo == ranges[0].hi {
		p.char(ranges[0].lo)
	} else if err := p.set(ranges, not); err != nil {
		return err
	}
	p.pos += size
	return nil
}

// bounds finds the end of the set that begins here.
func (p *parser) bounds() (body string, not bool, size int, err error) {
	rest := p.text[p.pos+1:]
	start := 0
	if strings.HasPrefix(rest, "!") {
		not, start = true, 1
	}
	first := start
	if strings.HasPrefix(rest[start:], "]") {
		first++
	}
	end := strings.IndexByte(rest[first:], ']')
	if end < 0 {
		return "", false, 0, p.unclosed()
	}
	return rest[start : first+end], not, first + end + 2, nil
}

func (p *parser) unclosed() error {
	after := p.pattern[p.base+len(p.text):]
	if strings.HasPrefix(strings.TrimLeft(after, " \t\r\n"), "|") && strings.Contains(after, "]") {
		return p.fault(p.pos, "has a | between [ and ], but | always separates alternatives", "write the characters of the set without it, such as [ab]")
	}
	return p.fault(p.pos, "has a [ that is never closed", "close it with ], or write [[] for the character [ itself")
}

// A span is a range of characters, both ends included.
type span struct{ lo, hi rune }

func (p *parser) ranges(body []rune) ([]span, error) {
	var out []span
	for i := 0; i < len(body); i++ {
		s := span{body[i], body[i]}
		if i+2 < len(body) && body[i+1] == '-' {
			s.hi = body[i+2]
			i += 2
		}
		if s.lo > s.hi {
			return nil, p.fault(p.pos, fmt.Sprintf("has a set whose range %c-%c runs backwards, so that it can match nothing", s.lo, s.hi),
				fmt.Sprintf("write %c-%c", s.hi, s.lo))
		}
		out = append(out, s)
	}
	return out, nil
}

// set writes a set for the glob library, which supports one range or a list of
// characters, in which a literal - must come first.
func (p *parser) set(ranges []span, not bool) error {
	p.wild = true
	p.source.WriteByte('[')
	if not {
		p.source.WriteByte('!')
	}
	if len(ranges) == 1 && ranges[0].lo < ranges[0].hi && ranges[0].lo != '!' {
		fmt.Fprintf(&p.source, "%c-%c]", ranges[0].lo, ranges[0].hi)
		return nil
	}
	chars, err := p.spell(ranges)
	if err != nil {
		return err
	}
	for _, r := range chars {
		if r == '!' || r == ']' || r == '\\' {
			p.source.WriteByte('\\')
		}
		p.source.WriteRune(r)
	}
	p.source.WriteByte(']')
	return nil
}

// spell lists the characters of ranges, sorted, with a - first.
func (p *parser) spell(ranges []span) ([]rune, error) {
	var chars []rune
	for _, s := range ranges {
		if int(s.hi-s.lo) >= maxClass-len(chars) {
			return nil, p.fault(p.pos, fmt.Sprintf("has a set of more than %d characters", maxClass), "write a smaller set, or ?")
		}
		for r := s.lo; r <= s.hi; r++ {
			if utf8.ValidRune(r) {
				chars = append(chars, r)
			}
		}
	}
	slices.SortFunc(chars, func(a, b rune) int { return int(order(a) - order(b)) })
	return slices.Compact(chars), nil
}

// order sorts - before all other characters.
func order(r rune) rune {
	if r == '-' {
		return -1
	}
	return r
}
