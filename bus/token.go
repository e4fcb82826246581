package bus

import (
	"errors"
	"fmt"
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
	escapes := 0
	for i := range len(id) {
		if !plain(id[i]) {
			escapes++
		}
	}
	if n := len(id) + 2*escapes; n > schema.MaxToken {
		return "", fmt.Errorf("the name %.32q… takes %d characters in a subject (each byte outside A-Z a-z 0-9 _ - takes three); use one that takes at most %d",
			id, n, schema.MaxToken)
	}
	if escapes == 0 {
		return id, nil
	}
	return escape(id, escapes), nil
}

func escape(id string, escapes int) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.Grow(len(id) + 2*escapes)
	for i := range len(id) {
		if c := id[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('=')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
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
		c, ok := hexByte(tok, i+1)
		if !ok {
			return "", fmt.Errorf("the token %q has a faulty escape at byte %d; write = and two upper-case hex digits", tok, i)
		}
		if plain(c) {
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

// hexByte reads the two upper-case hex digits at s[i:].
func hexByte(s string, i int) (byte, bool) {
	if i+2 > len(s) {
		return 0, false
	}
	hi, ok1 := hexDigit(s[i])
	lo, ok2 := hexDigit(s[i+1])
	return hi<<4 | lo, ok1 && ok2
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
