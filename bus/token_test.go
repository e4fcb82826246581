package bus

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestToken(t *testing.T) {
	for name, c := range map[string]struct{ id, want string }{
		"a plain id stays as it is":          {"agent_1-A", "agent_1-A"},
		"a lone underscore is escaped":       {"_", "=5F"},
		"two underscores are plain":          {"__", "__"},
		"a dot is escaped":                   {"a.b", "a=2Eb"},
		"the escape character is escaped":    {"a=2Eb", "a=3D2Eb"},
		"wildcards and blanks are escaped":   {"* >", "=2A=20=3E"},
		"each byte of a rune is escaped":     {"é", "=C3=A9"},
		"bytes that are no text are escaped": {"\x00\xff", "=00=FF"},
		"128 plain characters fit":           {strings.Repeat("x", 128), strings.Repeat("x", 128)},
		"42 escapes fit":                     {strings.Repeat(".", 42), strings.Repeat("=2E", 42)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Token(c.id)
			if err != nil || got != c.want {
				t.Errorf("Token(%q) = %q, %v; want %q", c.id, got, err, c.want)
			}
			if back, err := ParseToken(got); err != nil || back != c.id {
				t.Errorf("ParseToken(%q) = %q, %v; want %q", got, back, err, c.id)
			}
		})
	}
}

func TestTokenRefuses(t *testing.T) {
	for name, id := range map[string]string{
		"an empty id":                 "",
		"129 plain characters":        strings.Repeat("x", 129),
		"43 characters to be escaped": strings.Repeat(".", 43),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := Token(id); err == nil {
				t.Errorf("Token(%q) = %q; want an error", id, got)
			}
		})
	}
}

func TestParseTokenRefuses(t *testing.T) {
	for name, c := range map[string]struct{ tok, want string }{
		"nothing":                            {"", "is empty"},
		"the token for no agent":             {"_", "=5F"},
		"lower-case hex":                     {"a=2e", "upper-case"},
		"a cut escape":                       {"a=2", "faulty escape"},
		"an escape without digits":           {"=", "faulty escape"},
		"an escaped plain character":         {"=41", "needs none"},
		"an underscore escaped among others": {"a=5F", "needs none"},
		"a raw dot":                          {"a.b", "=2E"},
		"a raw blank":                        {"a b", "=20"},
		"129 characters":                     {strings.Repeat("x", 129), "129"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseToken(c.tok)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("ParseToken(%q) = %q, %v; want an error with %q", c.tok, got, err, c.want)
			}
		})
	}
}

func TestTokenProperties(t *testing.T) {
	ids := rapid.OneOf(rapid.StringN(0, -1, 130), rapid.StringMatching(`[A-Za-z0-9_.=* >-]{0,140}`),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 50), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		checkToken(t, ids.Draw(t, "id"), ids.Draw(t, "other"))
	})
}

// checkToken checks the laws of Token for two ids.
func checkToken(t interface{ Fatalf(string, ...any) }, a, b string) {
	ta, err := Token(a)
	if err != nil {
		return
	}
	if len(ta) > 128 || ta == "" || ta == "_" || strings.ContainsAny(ta, ".*> \t\r\n\x00") {
		t.Fatalf("Token(%q) = %q, which no subject can hold", a, ta)
	}
	if back, err := ParseToken(ta); err != nil || back != a {
		t.Fatalf("ParseToken(Token(%q)) = %q, %v", a, back, err)
	}
	if tb, err := Token(b); err == nil && (ta == tb) != (a == b) {
		t.Fatalf("Token(%q) = %q and Token(%q) = %q", a, ta, b, tb)
	}
}

func FuzzToken(f *testing.F) {
	f.Add("agent", "_")
	f.Add("a.b", "a=2Eb")
	f.Fuzz(func(t *testing.T, a, b string) { checkToken(t, a, b) })
}

func FuzzParseToken(f *testing.F) {
	for _, s := range []string{"", "_", "=5F", "a=2Eb", "=2e", "="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, tok string) {
		id, err := ParseToken(tok)
		if err != nil {
			return
		}
		if back, err := Token(id); err != nil || back != tok {
			t.Errorf("ParseToken accepts %q as %q, but its token is %q, %v", tok, id, back, err)
		}
	})
}
