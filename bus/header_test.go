package bus

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

func TestHeaderValues(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"an ordinary name stays as it is": {"mcp__server__tool", "mcp__server__tool"},
		"inner blanks stay as they are":   {"a b", "a b"},
		"outer blanks are escaped":        {" a ", "%20a%20"},
		"a lone blank is escaped":         {" ", "%20"},
		"line ends cannot end a header":   {"a\r\nHook-Id: x", "a%0D%0AHook-Id: x"},
		"NUL, tab and DEL are escaped":    {"\x00\t\x7f", "%00%09%7F"},
		"percent signs are escaped":       {"100%", "100%25"},
		"bytes outside ASCII are escaped": {"é\xff", "%C3%A9%FF"},
	} {
		t.Run(name, func(t *testing.T) {
			got := escapeValue(c.in)
			if got != c.want {
				t.Errorf("escapeValue(%q) = %q; want %q", c.in, got, c.want)
			}
			if back, err := unescapeValue(got); err != nil || back != c.in {
				t.Errorf("unescapeValue(%q) = %q, %v; want %q", got, back, err, c.in)
			}
		})
	}
}

func TestUnescapeValueReadsVariantsOfOtherClients(t *testing.T) {
	for in, want := range map[string]string{"%2f": "/", "caf\xc3\xa9": "café", "%41": "A"} {
		if got, err := unescapeValue(in); err != nil || got != want {
			t.Errorf("unescapeValue(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"%", "%4", "100%", "%zz", "%+1"} {
		if got, err := unescapeValue(in); err == nil {
			t.Errorf("unescapeValue(%q) = %q; want an error", in, got)
		}
	}
}

func FuzzHeaderValue(f *testing.F) {
	f.Add("a b")
	f.Add(" %\r\n\x00é")
	f.Fuzz(func(t *testing.T, s string) {
		e := escapeValue(s)
		if strings.TrimSpace(e) != e || strings.ContainsAny(e, "\r\n\x00") {
			t.Errorf("escapeValue(%q) = %q, which no header can hold", s, e)
		}
		if back, err := unescapeValue(e); err != nil || back != s {
			t.Errorf("unescapeValue(escapeValue(%q)) = %q, %v", s, back, err)
		}
		if back := overTheWire(t, nats.Header{"K": {e}})["K"]; len(e) > 0 && (len(back) != 1 || back[0] != e) {
			t.Errorf("the header %q arrives as %q", e, back)
		}
		_, _ = unescapeValue(s)
	})
}

// overTheWire returns h as the receiver of a message reads it.
func overTheWire(t testing.TB, h nats.Header) nats.Header {
	var b strings.Builder
	b.WriteString("NATS/1.0\r\n")
	for k, values := range h {
		for _, v := range values {
			b.WriteString(k + ": " + v + "\r\n")
		}
	}
	b.WriteString("\r\n")
	got, err := nats.DecodeHeadersMsg([]byte(b.String()))
	if err != nil {
		t.Fatalf("the headers %q cannot be read: %v", b.String(), err)
	}
	return got
}
