package rules

import (
	"regexp/syntax"
	"strings"
	"unicode"
)

// Limits of the texts that are derived from a pattern.
const (
	leastLiteral = 3  // bytes; shorter texts are in most events
	mostLiterals = 64 // alternatives
)

// literals returns texts in lower case, of which each match of a pattern has at least one; nil: none are
// known.
func literals(pattern string) []string {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	return required(re)
}

func required(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if s := lower(string(re.Rune)); len(s) >= leastLiteral {
			return []string{s}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if l := required(sub); l != nil && (best == nil || shortest(l) > shortest(best)) {
				best = l
			}
		}
		return best
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			l := required(sub)
			if l == nil || len(all)+len(l) > mostLiterals {
				return nil
			}
			all = append(all, l...)
		}
		return all
	}
	return nil
}

func shortest(texts []string) int {
	n := len(texts[0])
	for _, t := range texts {
		n = min(n, len(t))
	}
	return n
}

// lower folds the case of a text, as patterns do that ignore it: of two letters that such a pattern
// does not distinguish, it keeps the same one.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 {
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			return r
		}
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return unicode.ToLower(least)
	}, s)
}
