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

// sentence says in plain words why subject could not be decoded: which member has which
// type, and which one it needs. It does not name Go types.
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

// memberName returns a JSON pointer in the form that people write, shortened.
func memberName(p jsontext.Pointer) string {
	var names []string
	for name := range p.Tokens() {
		names = append(names, name)
	}
	return clip(strings.Join(names, "."))
}

// expected names the JSON that a Go type is read from.
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

// maxWord limits a foreign word that a sentence repeats. All words of the fabric are
// shorter.
const maxWord = 64

func clip(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) > maxWord {
		return strings.ToValidUTF8(s[:maxWord], "") + "…"
	}
	return s
}
