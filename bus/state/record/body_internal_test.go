package record

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// bodies are events as they come, and as they might.
func bodies() []string {
	long := strings.Repeat("long enough for many steps at once ", 9)
	return []string{
		string(usual().Body), `{}`, ` { "tool_input" : { } , "x" : [ ] } `, `{"tool_input":null,"prompt":"p"}`, `{"prompt":"p","tool_input":{"a":1}}`,
		`{"tool_input":{"b":1,"a":2}}`, `{"tool_input":{"a":1,"a":2}}`, `{"tool_input":{"a":1,"b":[true,false,null,-5,{"c":"d"}]},"tool_input":{"x":1}}`,
		`{"tool_input":{"a":1.0}}`, `{"tool_input":-0}`, `{"tool_input":01}`, `{"tool_input":1e400}`, `{"tool_input":123456789012345678}`, `{"tool_input":999999999999999}`,
		`{"tool_input":0.1e-7}`, `{"tool_input":{"a" :1}}`, `{"tool_input":[1, 2]}`, `{"tool_input":[1,2 ]}`, `{"tool_input":"\u0041\ud800\/\n\"\\"}`,
		"{\"tool_input\":\"\xff\"}", "{\"tool_input\":\"a\x01\"}", "{\"tool_input\":{\"\u00e9\":1,\"z\":2}}", `{"tool_input":"é𝄞` + long + `"}`, `{"tool_input":"` + long + `\t` + long + `"}`,
		`{"tool\u005finput":1}`, "{\"runtime\xff\":\"x\"}", `{"runtime":"claude","tool_kind":"a\"b","labels":{"host":"h"}}`, `{"runtime":"é"}`, `{"runtime":5}`,
		`{"tool_input":{"a":`, `{"tool_input":1`, `{"tool_input":1,}`, `{"tool_input":1}junk`, `{"tool_input":tru}`, `{"tool_input":"\x"}`, `{"tool_input":[1,]}`, `[]`, ``, `junk`,
		`{"tool_input":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`, `{"tool_input":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `,"prompt":1}`,
	}
}

// FuzzScan checks that any event gives texts of limited length, and the same hash when the
// order of its members and its spaces differ.
func FuzzScan(f *testing.F) {
	for _, s := range bodies() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, c := scan(data), newEncoder(&Options{})
		if n := max(len(b.text(b.runtime)), len(b.text(b.kind)), len(b.host())); n > maxName {
			t.Errorf("a text has %d bytes", n)
		}
		v := b.subject()
		want := c.hash(v)
		if other := v.Clone(); want != "" && other.Canonicalize(jsontext.AllowInvalidUTF8(true), jsontext.CanonicalizeRawInts(true), jsontext.CanonicalizeRawFloats(true)) == nil {
			if got := c.hash(other); got != want {
				t.Errorf("%s has the hash %s, and its canonical form %s", v, want, got)
			}
		}
	})
}
