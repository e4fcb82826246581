package loop

import (
	"encoding"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema"
)

// deepest is how deep a schema describes a type. Deeper values may be anything.
const deepest = 16

// schemaOf returns the JSON Schema of T, which must be an object.
func schemaOf[T any]() (jsontext.Value, error) {
	s := describe(reflect.TypeFor[T](), 0)
	if s["type"] != "object" {
		return nil, fmt.Errorf("is a %s, not an object; write a struct or a map", reflect.TypeFor[T]())
	}
	return schema.Marshal(s)
}

// describe returns the schema of a type; an empty schema accepts anything.
func describe(t reflect.Type, depth int) map[string]any {
	if depth > deepest {
		return map[string]any{}
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[jsontext.Value]():
		return map[string]any{}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "contentEncoding": "base64"}
		}
		return map[string]any{"type": "array", "items": describe(t.Elem(), depth+1)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": describe(t.Elem(), depth+1)}
	case reflect.Struct:
		return describeStruct(t, depth)
	}
	return map[string]any{}
}

// describeStruct returns the schema of a struct, with its fields as properties.
func describeStruct(t reflect.Type, depth int) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		p := describe(f.Type, depth+1)
		if text := f.Tag.Get("description"); text != "" {
			p["description"] = text
		}
		properties[name] = p
		if f.Type.Kind() != reflect.Pointer && !strings.Contains(options, "omitzero") && !strings.Contains(options, "omitempty") {
			required = append(required, name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}
