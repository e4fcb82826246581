package schema

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// sentence says in a person's words why subject could not be decoded: which
// member is what, and what belongs there. It names no Go types.
func sentence(subject string, err error) error {
	wrong, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return fmt.Errorf("%s is not valid JSON: %s", subject, strings.TrimPrefix(err.Error(), "jsontext: "))
	}
	if where := memberName(wrong.JSONPointer); where != "" {
		subject += "'s " + where
	}
	is := KindName(wrong.JSONKind)
	if len(wrong.JSONValue) > 0 && len(wrong.JSONValue) <= maxWord {
		is = string(wrong.JSONValue)
	}
	return fmt.Errorf("%s is %s; it must be %s", subject, is, expected(wrong.GoType))
}

// memberName is a JSON pointer as a person writes it, bounded.
func memberName(p jsontext.Pointer) string {
	var names []string
	for name := range p.Tokens() {
		names = append(names, name)
	}
	return clip(strings.Join(names, "."))
}

// expected names what JSON a Go type is read from.
func expected(t reflect.Type) string {
	if t == reflect.TypeFor[time.Time]() {
		return `a time such as "2026-11-21T10:00:00Z" (RFC 3339)`
	}
	if t == reflect.TypeFor[Duration]() {
		return `a duration such as "1.5s"`
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Uint64:
		return "a whole number"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// maxWord bounds a foreign word that is only ever repeated in a sentence. Every
// word that means something to the fabric is shorter.
const maxWord = 64

func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > maxWord {
		return strings.ToValidUTF8(s[:maxWord], "") + "…"
	}
	return s
}
