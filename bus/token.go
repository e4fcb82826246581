package bus

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

// lone is the token of control subjects for "no agent", so the id "_" needs another token.
const lone = "=5F"

var errEmptyID = errors.New("the name of an agent, pool, worker or producer is empty; use at least one character")

// Token returns id as one token of a subject or a key. Letters, digits, `_` and `-` stay as they
// are, every other byte becomes `=XX` in upper-case hex, and the id `_` becomes `=5F`. The limit
// of [schema.MaxToken] characters holds for the token with its escapes. Different ids have
// different tokens, and [ParseToken] is the inverse.
func Token(id string) (string, error) {
	if id == "" {
		return "", errEmptyID
	}
	if id == "_" {
		return lone, nil
	}
	size := len(id)
	for i := range len(id) {
		if !plain(id[i]) {
			size += 2
		}
	}
	if size > schema.MaxToken {
		return "", fmt.Errorf("the name %.32q… takes %d characters in a subject (each byte outside A-Z a-z 0-9 _ - takes three); use one that takes at most %d",
			id, size, schema.MaxToken)
	}
	return escapeBytes(id, '=', func(_ string, i int) bool { return !plain(id[i]) }), nil
}

// escapeBytes writes the special bytes of s as mark and two digits of upper-case hex.
func escapeBytes(s string, mark byte, special func(s string, i int) bool) string {
	const hex = "0123456789ABCDEF"
	var b []byte // nil: nothing was special so far
	for i := range len(s) {
		switch is := special(s, i); {
		case is && b == nil:
			b = append(make([]byte, 0, len(s)+16), s[:i]...)
			fallthrough
		case is:
			b = append(b, mark, hex[s[i]>>4], hex[s[i]&15])
		case b != nil:
			b = append(b, s[i])
		}
	}
	if b == nil {
		return s
	}
	return string(b)
}

// ParseToken returns the id of a token. It accepts only tokens of [Token], so that one id never
// has two subjects.
func ParseToken(tok string) (string, error) {
	switch {
	case tok == "":
		return "", errEmptyID
	case tok == "_":
		return "", errors.New(`the token "_" stands for no agent; write the name "_" as =5F`)
	case tok == lone:
		return "_", nil
	case len(tok) > schema.MaxToken:
		return "", fmt.Errorf("the token %.32q… has %d characters; at most %d are allowed", tok, len(tok), schema.MaxToken)
	}
	for i := range len(tok) {
		if !plain(tok[i]) {
			return unescape(tok, i)
		}
	}
	return tok, nil
}

// unescape decodes tok, whose first i bytes are plain.
func unescape(tok string, i int) (string, error) {
	b := make([]byte, i, len(tok))
	copy(b, tok)
	for i < len(tok) {
		c := tok[i]
		if plain(c) {
			b = append(b, c)
			i++
			continue
		}
		if c != '=' {
			return "", fmt.Errorf("the token %q has the character %q; write it as =%02X", tok, c, c)
		}
		digits := tok[i+1 : min(i+3, len(tok))]
		n, err := strconv.ParseUint(digits, 16, 8)
		if err != nil || len(digits) != 2 || strings.ToUpper(digits) != digits {
			return "", fmt.Errorf("the token %q has a faulty escape at byte %d; write = and two upper-case hex digits", tok, i)
		}
		if c = byte(n); plain(c) {
			return "", fmt.Errorf("the token %q escapes the character %q, which needs none; write it as it is", tok, c)
		}
		b = append(b, c)
		i += 3
	}
	return string(b), nil
}

// plain reports whether c stands for itself in a token.
func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c == '_' || c == '-'
}
