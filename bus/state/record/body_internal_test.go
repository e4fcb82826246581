package record

import (
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema/redact"
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

type failer interface {
	Fatalf(format string, args ...any)
}

// sameAsFull holds what a glance makes of an event to what the codec does.
func sameAsFull(t failer, data []byte) {
	got, want := scan(data), fullScan(data)
	value, fits := got.subject()
	got.fitInput, got.fitPrompt = false, false
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%q is read as\n%+v, by the codec as\n%+v", data, got, want)
	}
	c := newEncoder(&Options{Rules: new(redact.Rules)})
	if got, want := c.hash(value, fits), c.hash(value, false); got != want {
		t.Fatalf("%q has the hash %s; its canonical form has %q", value, got, want)
	}
	for _, v := range []jsontext.Value{want.runtime, want.kind} {
		if got, want := want.text(v), want.decoded(v); got != want {
			t.Fatalf("%q is the text %q; by the codec %q", v, got, want)
		}
	}
}

func TestAGlanceAgreesWithTheCodec(t *testing.T) {
	for _, s := range bodies() {
		sameAsFull(t, []byte(s))
	}
	rapid.Check(t, func(t *rapid.T) {
		// A text with something else in the place of a part of it.
		s := rapid.SampledFrom(bodies()).Draw(t, "body")
		at := rapid.IntRange(0, len(s)).Draw(t, "at")
		end := rapid.IntRange(at, min(len(s), at+3)).Draw(t, "end")
		other := rapid.SampledFrom([]string{"", " ", `"`, `\`, "0", "-", ".", "e", ",", ":", "{", "}", "[", "]", "\x00", "\x80", "é", "\u2028", "\x7f", `\u00e9`, `{"a":1}`}).Draw(t, "other")
		sameAsFull(t, []byte(s[:at]+other+s[end:]))
	})
}

// TestMostEventsAreReadAtAGlance keeps the short way from being lost unseen.
func TestMostEventsAreReadAtAGlance(t *testing.T) {
	e := usual()
	b, ok := plainScan(e.Body)
	if _, canonical := b.subject(); !ok || !canonical {
		t.Errorf("%s is read at a glance: %t, canonical: %t", b.input, ok, canonical)
	}
	c := newEncoder(&Options{Broker: "b"})
	if n := testing.AllocsPerRun(100, func() { _, _ = c.line(&e, 0) }); n > 4 {
		t.Errorf("a line takes %v allocations; it is the runtime, the tool's kind and the hash", n)
	}
}

func FuzzGlance(f *testing.F) {
	for _, s := range bodies() {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) { sameAsFull(t, data) })
}
