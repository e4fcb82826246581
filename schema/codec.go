package schema

import (
	"bytes"
	"reflect"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/schema/plainjson"
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
	if data, ok := appendPlain(b, v); ok {
		return data, nil
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
	if readPlain(data, v) {
		return nil
	}
	return json.Unmarshal(data, v, options)
}

// The messages that most calls send, and that are usually plain.
var (
	// The method of Result concerns results with unknown members, which are not plain.
	replies  = sync.OnceValue(func() *plainjson.Codec[BatchReply] { return plainjson.Of[BatchReply](reflect.TypeFor[Result]()) })
	verdicts = sync.OnceValue(func() *plainjson.Codec[Verdict] { return plainjson.Of[Verdict]() })
	records  = sync.OnceValue(func() *plainjson.Codec[Record] { return plainjson.Of[Record]() })
	events   = sync.OnceValue(func() *plainjson.Codec[Event] { return plainjson.Of[Event]() })
)

// appendPlain is AppendJSON for plain messages. It lists types, because a type that embeds a
// verdict has more members.
func appendPlain(b []byte, v any) ([]byte, bool) {
	switch v := v.(type) {
	case *BatchReply:
		if v != nil {
			return replies().Append(b, v)
		}
	case *Verdict:
		if v != nil {
			return verdicts().Append(b, v)
		}
	case *Record:
		if v != nil {
			return records().Append(b, v)
		}
	case *Event:
		if v != nil {
			return events().Append(b, v)
		}
	}
	return nil, false
}

// readPlain is Unmarshal for plain messages.
func readPlain(data []byte, v any) bool {
	switch v := v.(type) {
	case *BatchReply:
		return v != nil && replies().Read(data, v)
	case *Verdict:
		return v != nil && verdicts().Read(data, v)
	case *Event:
		return v != nil && events().Read(data, v)
	}
	return false
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

// kindOf returns the kind of a JSON value. Only of an object it does not check the whole value.
func kindOf(data jsontext.Value) jsontext.Kind {
	if k := data.Kind(); k == '{' || data.IsValid(options) {
		return k
	}
	return jsontext.KindInvalid // it may be text that begins like true, false or null
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
