package builtin

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// moved is text in which the folder from is called to, wherever it is named as
// a whole: /w/a is in /w/a/b and not in /w/ab or /x/w/a. A folder without a
// slash is a word like any other, and is left alone.
func moved(text, from, to string) string {
	from = strings.TrimRight(from, `/\`)
	if !strings.ContainsAny(from, `/\`) {
		return text
	}
	var b strings.Builder
	for at := 0; ; {
		i := strings.Index(text[at:], from)
		if i < 0 {
			b.WriteString(text[at:])
			return b.String()
		}
		start, end := at+i, at+i+len(from)
		if begins(text[:start]) && ends(text[end:]) {
			b.WriteString(text[at:start] + to)
		} else {
			// One character on, since the next match may overlap with this one.
			_, n := utf8.DecodeRuneInString(text[start:])
			end = start + n
			b.WriteString(text[at:end])
		}
		at = end
	}
}

// begins reports whether a path can begin after before.
func begins(before string) bool {
	if strings.HasSuffix(before, "://") {
		return true
	}
	r, _ := utf8.DecodeLastRuneInString(before)
	return before == "" || !inName(r) && !strings.ContainsRune(`/\.}`, r)
}

// ends reports whether the name of a folder can end before after.
func ends(after string) bool {
	r, n := utf8.DecodeRuneInString(after)
	if r == '.' { // of a sentence, or of another name
		r, _ = utf8.DecodeRuneInString(after[n:])
		return len(after) == n || !inName(r) && r != '.'
	}
	return after == "" || !inName(r)
}

// inName reports whether r can stand in the midst of a file's name.
func inName(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("_-+@%~", r)
}
