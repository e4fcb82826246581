package match

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gobwas/glob"
)

// MaxPattern is the longest pattern, in bytes.
const MaxPattern = 4096

// Compile reads a pattern. The empty pattern matches every name. Compile rejects a pattern that
// can match nothing, and anything that looks like a regular expression. Its error is a
// [*SyntaxError].
func Compile(pattern string) (*Matcher, error) {
	m := new(Matcher)
	if pattern == "" {
		m.all = true
		return m, nil
	}
	if err := precheck(pattern); err != nil {
		return nil, err
	}
	offset := 0
	for alternative := range strings.SplitSeq(pattern, "|") {
		p := parser{pattern: pattern, base: offset, text: alternative}
		offset += len(alternative) + 1
		if err := m.add(&p); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// precheck rejects faults of the whole pattern.
func precheck(pattern string) error {
	fault := &SyntaxError{Pattern: pattern}
	switch {
	case len(pattern) > MaxPattern:
		fault.Pattern = pattern[:64] + "…"
		fault.Message = fmt.Sprintf("is longer than %d bytes", MaxPattern)
		fault.Hint = "write a glob that covers the names, or several hooks"
	case !utf8.ValidString(pattern):
		fault.Message, fault.Hint = "is not valid UTF-8", "write it in UTF-8"
	case strings.Trim(pattern, "| \t\r\n") == "":
		fault.Message = "can match nothing"
		fault.Hint = `leave it out to match everything, or write the names, such as "Write|Edit"`
	default:
		return nil
	}
	return fault
}

// add compiles one alternative into m. Blank ones match nothing and are dropped. There is
// another one, because precheck rejects a blank pattern.
func (m *Matcher) add(p *parser) error {
	p.trim()
	if p.text == "" {
		return nil
	}
	if err := p.parse(); err != nil {
		return err
	}
	switch {
	case p.wild && p.source.String() == "*":
		m.all = true
	case !p.wild:
		m.exact = append(m.exact, p.literal.String())
	default:
		g, err := glob.Compile(p.source.String())
		if err != nil {
			return p.fault(0, "is not a glob: "+err.Error(), "write globs such as mcp__*")
		}
		m.globs, m.begins = append(m.globs, g), append(m.begins, p.begin)
	}
	return nil
}

// A parser reads one alternative. It translates it for the glob library, whose own
// braces, backslashes and double stars must not apply.
type parser struct {
	pattern string
	// base is the offset of text in pattern.
	base int
	text string
	pos  int
	// source is the alternative for the glob library.
	source strings.Builder
	// literal is the only matching name, as long as there is no wildcard.
	literal strings.Builder
	wild    bool
	starred bool
	// begin is the common prefix of all matching names.
	begin string
}

func (p *parser) trim() {
	left := strings.TrimLeft(p.text, " \t\r\n")
	p.base += len(p.text) - len(left)
	p.text = strings.TrimRight(left, " \t\r\n")
}

func (p *parser) fault(pos int, message, hint string) error {
	return &SyntaxError{Pattern: p.pattern, Offset: p.base + pos, Message: message, Hint: hint}
}

func (p *parser) parse() error {
	for p.pos < len(p.text) {
		if err := p.regex(); err != nil {
			return err
		}
		r, size := utf8.DecodeRuneInString(p.text[p.pos:])
		star := p.starred
		p.starred = false
		switch r {
		case '*':
			p.starred, p.wild = true, true
			if !star {
				p.source.WriteByte('*')
			}
			p.pos++
		case '?':
			p.wild = true
			p.source.WriteByte('?')
			p.pos++
		case '[':
			if err := p.class(); err != nil {
				return err
			}
		default:
			p.char(r)
			p.pos += size
		}
	}
	return nil
}

// char adds a literal character.
func (p *parser) char(r rune) {
	p.literal.WriteRune(r)
	if !p.wild {
		p.begin = p.literal.String()
	}
	if strings.ContainsRune(`*?[]{}\`, r) {
		p.source.WriteByte('\\')
	}
	p.source.WriteRune(r)
}
