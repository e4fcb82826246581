package builtin

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/hookfabric/hookfabric/schema"
)

// maxText is the longest text of an option, and the longest text that a built-in hook
// injects at a time.
const maxText = 64 << 10

// options decodes the options of h into a T, a struct with a json name for every option.
// Absent options keep their zero value.
func options[T any](h schema.Hook) (T, error) {
	var out T
	if len(h.Options) == 0 {
		return out, nil
	}
	b, err := schema.Marshal(h.Options)
	if err == nil {
		err = json.Unmarshal(b, &out, json.RejectUnknownMembers(true))
	}
	if err == nil {
		return out, nil
	}
	fault, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return out, fmt.Errorf("reading the options of %q: %w", h.Handler, err)
	}
	name := fault.JSONPointer.LastToken()
	if errors.Is(fault.Err, json.ErrUnknownName) {
		return out, fmt.Errorf("%q has no option %q; %s", h.Handler, name, known(reflect.TypeFor[T]()))
	}
	return out, fmt.Errorf("the option %q of %q is %s; it must be %s", name, h.Handler, schema.KindName(fault.JSONKind), typeName(fault.GoType))
}

// known lists the options of t.
func known(t reflect.Type) string {
	var names []string
	for _, field := range reflect.VisibleFields(t) {
		if field.Anonymous {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names = append(names, name)
	}
	if len(names) == 0 {
		return "it has none"
	}
	return "it has " + strings.Join(names, ", ")
}

func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// textOption rejects a text that is longer than maxText.
func textOption(h schema.Hook, name, text string) error {
	if len(text) > maxText {
		return fmt.Errorf("the option %q of %q has %d bytes; the limit is %d", name, h.Handler, len(text), maxText)
	}
	return nil
}
