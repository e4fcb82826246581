package edit

import (
	"bytes"
	"slices"
)

// A Syntax is the set of extensions of JSON that a reader accepts.
type Syntax int

// The extensions of JSON.
const (
	Comments Syntax = 1 << iota // those of JavaScript, // and /* */
	Mark                        // a byte order mark before the text
)

const byteOrderMark = "\xef\xbb\xbf"

// extras returns the spans of a text that are not JSON.
func (s Syntax) extras(text []byte) (all []span) {
	from := 0
	if s&Mark != 0 && bytes.HasPrefix(text, []byte(byteOrderMark)) {
		from = len(byteOrderMark)
		all = append(all, span{0, from})
	}
	if s&Comments == 0 {
		return all
	}
	for i := from; i < len(text); i++ {
		rest := text[i:]
		switch {
		case text[i] == '"':
			i += stringEnd(rest)
		case bytes.HasPrefix(rest, []byte("//")):
			n := bytes.IndexAny(rest, "\r\n")
			if n < 0 {
				n = len(rest)
			}
			all = append(all, span{i, i + n})
			i += n - 1
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest[2:], []byte("*/"))
			if n < 0 {
				return all // the parser reports it
			}
			all = append(all, span{i, i + n + 4})
			i += n + 3
		}
	}
	return all
}

// stringEnd returns the end of the string at the beginning of a text.
func stringEnd(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(text)
}

// plain returns a text with spaces in place of all that is not JSON, so that positions stay the same.
func (s Syntax) plain(text []byte) []byte {
	extras := s.extras(text)
	if len(extras) == 0 {
		return text
	}
	text = slices.Clone(text)
	for _, e := range extras {
		for i := e.start; i < e.end; i++ {
			if text[i] != '\n' && text[i] != '\r' {
				text[i] = ' '
			}
		}
	}
	return text
}

// Plain returns the document as JSON.
func (d *Doc) Plain() []byte { return d.syntax.plain(d.text) }

// extra reports whether the text between two positions has anything that is not JSON.
func (d *Doc) extra(from, to int) bool {
	return slices.ContainsFunc(d.syntax.extras(d.text), func(e span) bool { return e.start < to && e.end > from })
}

// behind returns the position after the comments that follow a position on its line.
func (d *Doc) behind(at int) int {
	for _, e := range d.syntax.extras(d.text) {
		if e.start >= at && len(bytes.Trim(d.text[at:e.start], " \t,")) == 0 {
			at = e.end
		}
	}
	return at
}
