package schema_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema"
)

func TestInvisibleCharactersAreEscaped(t *testing.T) {
	for given, want := range map[string]string{
		"plain text, größer, 漢字\u3000かな, \U0001f600": "plain text, größer, 漢字\u3000かな, \U0001f600",
		"red \x1b[31m":           `red \x1b[31m`,
		"8-bit \u009b31m":        `8-bit \x9b31m`,
		"a\r\nbroker: forged\tx": `a\r\nbroker: forged\tx`,
		"\u202egnp.exe":          `\u202egnp.exe`,
		"\u2066a\u2069 \u200fb":  `\u2066a\u2069 \u200fb`,
		"line\u2028end\u0085":    `line\u2028end\x85`,
		"\xff\xfe":               `\xff\xfe`,
		"real \ufffd":            "real \ufffd",
		"tag \U000e0041":         `tag \U000e0041`,
		"क\u094d\u200dष, می\u200cخواهم": "क\u094d\u200dष, می\u200cخواهم",
		"": "",
	} {
		if got := schema.Visible(given); got != want {
			t.Errorf("%q is shown as %s, want %s", given, got, want)
		}
	}
	if got := schema.VisibleText("a\n\tb\r\x1b"); got != "a\n\tb"+`\r\x1b` {
		t.Errorf("%q", got)
	}
}

// Visible text never moves a cursor, ends a line, changes direction or hides, and text
// that is already visible stays unchanged.
func TestVisibleTextHasNoEffects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		given := rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) string {
			return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		}), rapid.StringOf(rapid.RuneFrom(nil, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp))).Draw(t, "given")
		odd := func(r rune) bool {
			return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && r != '\u200c' && r != '\u200d'
		}
		line, text := schema.Visible(given), schema.VisibleText(given)
		if !utf8.ValidString(line) || strings.ContainsFunc(line, odd) {
			t.Fatalf("%q is shown as %q", given, line)
		}
		if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return odd(r) && r != '\n' && r != '\t' }) ||
			strings.Count(text, "\n") != strings.Count(given, "\n") {
			t.Fatalf("%q is shown as %q", given, text)
		}
		if schema.Visible(line) != line || !strings.ContainsFunc(given, odd) && utf8.ValidString(given) && line != given {
			t.Fatalf("%q is shown as %q", given, line)
		}
		data, err := schema.Marshal(given)
		if err != nil || !utf8.ValidString(given) {
			return
		}
		shown := schema.VisibleJSON(data)
		var back string
		if err := schema.Unmarshal(shown, &back); err != nil || back != given || strings.ContainsFunc(string(shown), odd) {
			t.Fatalf("%q is shown as %s: %q, %v", given, shown, back, err)
		}
	})
}
