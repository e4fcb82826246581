package match

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// regex rejects text at the current place that looks like a regular expression. It has no
// meaning in globs, so it would silently match nothing.
func (p *parser) regex() error {
	rest := p.text[p.pos:]
	var found string
	switch c := rest[0]; {
	case strings.HasPrefix(rest, ".*"):
		return p.fault(p.pos, "has .* in it, which is a regular expression; matchers are globs", p.instead("[.]*", "a dot and anything after it"))
	case c == '\\':
		found = rest[:min(2, len(rest))]
		if len(rest) > 1 && rest[1] >= 0x80 {
			found = `\`
		}
	case strings.IndexByte("^$+()", c) >= 0:
		found = string(c)
	default:
		return nil
	}
	literal := "[" + found[:1] + "]"
	return p.fault(p.pos, fmt.Sprintf("has %s in it, which is a regular expression; matchers are globs", found),
		p.instead(literal, "the character "+found[:1]+" itself"))
}

// regexClass rejects sets of regular expressions.
func (p *parser) regexClass(body string, not bool) error {
	switch {
	case !not && len(body) > 1 && body[0] == '^':
		return p.fault(p.pos, "has a set that begins with ^, as in regular expressions", fmt.Sprintf("write [!%s]", body[1:]))
	case strings.HasPrefix(body, "[:"):
		return p.fault(p.pos, "has a named set, as in regular expressions", "write the characters, such as [A-Za-z0-9_]")
	}
	if i := strings.IndexByte(body, '\\'); i >= 0 && i+1 < len(body) && strings.IndexByte("dDwWsSb", body[i+1]) >= 0 {
		return p.fault(p.pos, fmt.Sprintf("has %s in a set, as in regular expressions", body[i:i+2]), "write the characters, such as [A-Za-z0-9_]")
	}
	return nil
}

// instead returns what to write for the whole pattern: a glob like the regular
// expression, if one is found, and the form of a literal character.
func (p *parser) instead(literal, meaning string) string {
	itself := fmt.Sprintf("%s for %s", literal, meaning)
	if g := globFor(p.pattern); g != "" {
		return fmt.Sprintf("write %q, or %s", g, itself)
	}
	return "write * for any characters, ? for one, [0-9] for one of a set, | between alternatives, or " + itself
}

// translations are the parts of regular expressions with an equivalent glob, and group is
// one in parentheses. They are made only for a faulty pattern, because many programs with
// this package run for one call.
var (
	translations = sync.OnceValue(func() *strings.Replacer {
		return strings.NewReplacer(`\d+`, "[0-9]*", `\w+`, "*", `\d`, "[0-9]", `\w`, "[A-Za-z0-9_]", `\.`, ".",
			`\_`, "_", `\-`, "-", "[^", "[!", "(?:", "(", ".*", "*", ".+", "?*", "]+", "]*", ")$", ")", "^", "", "$", "")
	})
	group = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([^()]*)\(([^()]*)\)([^()]*)$`) })
)

// globFor guesses the glob for a regular expression; "" if it cannot.
func globFor(re string) string {
	g := translations().Replace(re)
	if m := group().FindStringSubmatch(g); m != nil {
		if strings.Contains(m[1]+m[3], "|") {
			return ""
		}
		parts := strings.Split(m[2], "|")
		for i, part := range parts {
			parts[i] = m[1] + part + m[3]
		}
		g = strings.Join(parts, "|")
	}
	if strings.ContainsAny(g, `()\+^$`) || strings.Contains(g, ".*") {
		return ""
	}
	if _, err := Compile(g); err != nil || g == "" {
		return ""
	}
	return g
}
