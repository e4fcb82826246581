package schema

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible escapes s for one line of a terminal or log, so that untrusted text is safe to print.
// It escapes line ends, control characters, direction marks, other invisible characters and
// invalid UTF-8, as in \n, \x1b and \u202e.
func Visible(s string) string { return visible(s, "") }

// VisibleText is [Visible] for a text of several lines: it keeps line feeds and tabs.
func VisibleText(s string) string { return visible(s, "\n\t") }

func visible(s, stays string) string {
	from := strings.IndexFunc(s, func(r rune) bool { return hidden(r) && !strings.ContainsRune(stays, r) })
	if from < 0 {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:from])
	for at := from; at < len(s); {
		r, size := utf8.DecodeRuneInString(s[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			b.WriteString(escape(rune(s[at])))
		case hidden(r) && r != utf8.RuneError && !strings.ContainsRune(stays, r):
			b.WriteString(escape(r))
		default:
			b.WriteString(s[at : at+size])
		}
		at += size
	}
	return b.String()
}

// hidden reports whether r is invisible, or has effects beyond its shape. The two joiners
// are permitted, because scripts need them; the replacement character is checked
// separately.
func hidden(r rune) bool {
	switch r {
	case utf8.RuneError:
		return true
	case '\u200c', '\u200d':
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// escape writes a character, or an invalid byte, in ASCII.
func escape(r rune) string {
	const hex = "0123456789abcdef"
	digits := 8
	switch {
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < 0x100:
		digits = 2
	case r < 0x10000:
		digits = 4
	}
	out := []byte{'\\', map[int]byte{2: 'x', 4: 'u', 8: 'U'}[digits]}
	for i := digits - 1; i >= 0; i-- {
		out = append(out, hex[r>>(4*i)&0xf])
	}
	return string(out)
}

// VisibleJSON escapes such characters in JSON with JSON's own escapes, so that the data stay
// the same. It keeps line feeds and tabs between members.
func VisibleJSON(data []byte) []byte {
	s := string(data)
	if !strings.ContainsFunc(s, hidden) {
		return data
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !hidden(r) || r == utf8.RuneError || r == '\n' || r == '\t':
			b.WriteRune(r)
		case r < 0x10000:
			b.WriteString(`\u` + escape(r | 0x10000)[6:])
		default:
			r -= 0x10000
			b.WriteString(`\u` + escape(0xd800 + r>>10 | 0x10000)[6:] + `\u` + escape(0xdc00 + r&0x3ff | 0x10000)[6:])
		}
	}
	return []byte(b.String())
}
