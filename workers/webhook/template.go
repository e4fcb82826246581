package webhook

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hookfabric/hookfabric/schema"
)

var (
	errDollar = errors.New("its value has a $ without {NAME}; write ${NAME} for a variable, with letters, digits and _, or $$ for a dollar sign")
	errLong   = fmt.Errorf("its value has more than %d bytes; write a shorter value", schema.MaxHeader)
)

// expand replaces each ${NAME} in template by the variable's value, which is not expanded
// again, and each $$ by a dollar sign. Every other $ is an error, so that a misspelt
// secret is not sent as text.
func expand(template string, value func(name string) (string, error)) (string, error) {
	var b strings.Builder
	for b.Len() <= schema.MaxHeader {
		before, after, more := strings.Cut(template, "$")
		b.WriteString(before)
		if !more {
			return b.String(), nil
		}
		if rest, dollar := strings.CutPrefix(after, "$"); dollar {
			b.WriteByte('$')
			template = rest
			continue
		}
		name, rest, ok := cutName(after)
		if !ok {
			return "", errDollar
		}
		s, err := value(name)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
		template = rest
	}
	return "", errLong
}

// cutName reads "{NAME}" and returns the rest.
func cutName(s string) (name, rest string, ok bool) {
	s, opened := strings.CutPrefix(s, "{")
	name, rest, closed := strings.Cut(s, "}")
	return name, rest, opened && closed && isVariable(name)
}

// isVariable reports whether name is a valid variable name for shells.
func isVariable(name string) bool {
	for i, c := range name {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
