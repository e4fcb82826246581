package schema

import (
	"bytes"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// options define the fabric's dialect of JSON. Duplicate names are rejected, because two
// readers may pick different ones and a policy must see what the tool will see. Invalid
// UTF-8 and lone surrogates are replaced, because real tools print them and policies must
// judge them.
var options = json.JoinOptions(jsontext.AllowInvalidUTF8(true), json.Deterministic(true))

// Marshal encodes v in the fabric's JSON dialect.
func Marshal(v any) ([]byte, error) { return AppendJSON(nil, v) }

// AppendJSON appends the JSON of v to b, as [Marshal] encodes it.
func AppendJSON(b []byte, v any) ([]byte, error) {
	if r, ok := v.(*Record); ok && r != nil {
		return AppendRecord(b, r)
	}
	if p := plainOf(v); p != nil {
		if data, ok := p.appendPlain(b); ok {
			return data, nil
		}
	}
	data, err := json.Marshal(v, options)
	if b == nil || err != nil {
		return data, err
	}
	return append(b, data...), nil
}

// Unmarshal decodes data in the fabric's JSON dialect. It ignores unknown members and rejects
// duplicate names.
func Unmarshal(data []byte, v any) error {
	if p := plainOf(v); p != nil && p.readPlain(data) {
		return nil
	}
	return json.Unmarshal(data, v, options)
}

// validObject reports whether v is a JSON object.
func validObject(v jsontext.Value) bool { return v.Kind() == '{' }

// isNull reports whether v is absent or the JSON null.
func isNull(v jsontext.Value) bool {
	return len(v) == 0 || bytes.Equal(bytes.TrimSpace(v), []byte("null"))
}

// KindName returns the name of a JSON value's kind for messages, such as "a string".
func KindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "a list"
	case '{':
		return "an object"
	}
	return "not valid JSON"
}

// depth returns how deep data nests, if it is JSON.
func depth(data []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}
