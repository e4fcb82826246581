package match_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema/match"
)

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		name, pattern string
		yes, no       []string
	}{
		{"no pattern matches everything", "", []string{"", "Bash", "a/b\nc"}, nil},
		{"a star matches everything", "*", []string{"", "Bash", "a/b\nc"}, nil},
		{"many stars are one", " *** ", []string{"", "Bash"}, nil},
		{"a star among names still matches everything", "Write|*", []string{"", "Bash"}, nil},
		{"a name matches only itself", "Write", []string{"Write"}, []string{"", "write", "WriteX", "XWrite", "Write "}},
		{"alternatives are trimmed", " Write |\tEdit ", []string{"Write", "Edit"}, []string{"Write ", "Write|Edit"}},
		{"blank alternatives are dropped", "Write||Edit|", []string{"Write", "Edit"}, []string{""}},
		{"a blank within a name stays", "Read File", []string{"Read File"}, []string{"ReadFile"}},
		{"a prefix is case-sensitive", "mcp__*", []string{"mcp__", "mcp__x__y"}, []string{"MCP__x", "amcp__"}},
		{"a suffix", "*update_task_status", []string{"update_task_status", "mcp__p__update_task_status"}, []string{"update_task_status2"}},
		{"a star crosses slashes, dots and lines", "a*z", []string{"az", "a/b.c\nz"}, []string{"a/b.c\n"}},
		{"a double star is a star", "a**z", []string{"az", "a//z"}, []string{"a"}},
		{"a question mark is one character, not one byte", "a?c", []string{"abc", "aüc", "a/c"}, []string{"ac", "abbc"}},
		{"a set", "[WE]*", []string{"Write", "Edit"}, []string{"Read", ""}},
		{"a negated set", "[!W]*", []string{"Edit", "/"}, []string{"Write", ""}},
		{"a range", "v[0-9]", []string{"v0", "v9"}, []string{"va", "v10"}},
		{"a set of ranges and characters", "[a-cx-z_5]", []string{"a", "c", "y", "_", "5"}, []string{"d", "-", "w"}},
		{"a negated set of ranges and characters", "[!a-cx_]", []string{"d", "-"}, []string{"a", "b", "c", "x", "_"}},
		{"a closing bracket that comes first means itself", "[]a]", []string{"]", "a"}, []string{"[", ""}},
		{"a negated closing bracket", "[!]a]", []string{"x"}, []string{"]", "a"}},
		{"a dash at the end means itself", "[a-]", []string{"a", "-"}, []string{"b"}},
		{"a dash at the start means itself", "[-a]", []string{"a", "-"}, []string{"b"}},
		{"a dash after a range means itself", "[a-c-e]", []string{"a", "b", "-", "e"}, []string{"d"}},
		{"an exclamation mark later in a set means itself", "[a!]", []string{"a", "!"}, []string{"b"}},
		{"a range from the exclamation mark on", "x[a!-#]", []string{"x!", "x#", "xa"}, []string{"x$"}},
		{"a wide range", "[一-龥]x", []string{"中x"}, []string{"ax"}},
		{"a set of one means the character", "C[+][+]", []string{"C++"}, []string{"C", "C+"}},
		{"special characters as sets", "[*][?][[][(][)][$][.]*", []string{"*?[()$.*", "*?[()$.x"}, []string{"a?[()$."}},
		{"a caret alone in a set means itself", "[^]", []string{"^"}, []string{"a"}},
		{"a backslash in a set means itself", `a[\]b`, []string{`a\b`}, []string{"a]b", "ab"}},
		{"braces mean themselves", "{Write,Edit}", []string{"{Write,Edit}"}, []string{"Write", "Edit"}},
		{"braces mean themselves in globs", "{a,b}*", []string{"{a,b}", "{a,b}c"}, []string{"a", "b"}},
		{"an open brace is no fault", "a{*", []string{"a{", "a{b"}, []string{"a"}},
		{"a lone closing bracket means itself", "a]*", []string{"a]"}, []string{"a"}},
		{"dots mean themselves", "fs.read", []string{"fs.read"}, []string{"fsxread"}},
		{"many names", "a|b|c|d|e|f|g|h|i|j*", []string{"a", "i", "j", "jj"}, []string{"k", ""}},
		{"a NUL is a character", "a\x00*", []string{"a\x00b"}, []string{"a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := match.Compile(c.pattern)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range c.yes {
				if !m.Match(s) {
					t.Errorf("%q does not match %q", c.pattern, s)
				}
			}
			for _, s := range c.no {
				if m.Match(s) {
					t.Errorf("%q matches %q", c.pattern, s)
				}
			}
		})
	}
}

func TestRefused(t *testing.T) {
	const generic = "write * for any characters, ? for one, [0-9] for one of a set, | between alternatives, or "
	for _, c := range []struct{ name, pattern, message, hint string }{
		{"only a bar", "|", "can match nothing", `leave it out to match everything, or write the names, such as "Write|Edit"`},
		{"only blanks", " \t ", "can match nothing", `leave it out to match everything, or write the names, such as "Write|Edit"`},
		{"blanks and bars", " | | ", "can match nothing", `leave it out to match everything, or write the names, such as "Write|Edit"`},
		{"dot star", "mcp__.*", "has .* in it, which is a regular expression; matchers are globs", `write "mcp__*", or [.]* for a dot and anything after it`},
		{"anchors", "^Write$|^Edit$", "has ^ in it, which is a regular expression; matchers are globs", `write "Write|Edit", or [^] for the character ^ itself`},
		{"a dollar", "Write$", "has $ in it, which is a regular expression; matchers are globs", `write "Write", or [$] for the character $ itself`},
		{"a digit class", `v\d`, `has \d in it, which is a regular expression; matchers are globs`, `write "v[0-9]", or [\] for the character \ itself`},
		{"an escaped dot", `fs\.read`, `has \. in it, which is a regular expression; matchers are globs`, `write "fs.read", or [\] for the character \ itself`},
		{"a lone backslash", `a\`, `has \ in it, which is a regular expression; matchers are globs`, generic + `[\] for the character \ itself`},
		{"a group", "(Write|Edit)", "has ( in it, which is a regular expression; matchers are globs", `write "Write|Edit", or [(] for the character ( itself`},
		{"a group in the middle", "mcp__(a|b)__.*", "has ( in it, which is a regular expression; matchers are globs", `write "mcp__a__*|mcp__b__*", or [(] for the character ( itself`},
		{"a plus", "Bash+", "has + in it, which is a regular expression; matchers are globs", generic + "[+] for the character + itself"},
		{"dot plus", "a.+", "has + in it, which is a regular expression; matchers are globs", `write "a?*", or [+] for the character + itself`},
		{"a negated set as in regular expressions", "[^a]x", "has a set that begins with ^, as in regular expressions", "write [!a]"},
		{"a named set", "[[:alpha:]]*", "has a named set, as in regular expressions", "write the characters, such as [A-Za-z0-9_]"},
		{"a class in a set", `[\w-]*`, `has \w in a set, as in regular expressions`, "write the characters, such as [A-Za-z0-9_]"},
		{"an unclosed set", "Write|a[bc", "has a [ that is never closed", "close it with ], or write [[] for the character [ itself"},
		{"an empty set", "[]", "has a [ that is never closed", "close it with ], or write [[] for the character [ itself"},
		{"an empty negated set", "[!]", "has a [ that is never closed", "close it with ], or write [[] for the character [ itself"},
		{"a bar in a set", "[a|b]", "has a | between [ and ], but | always separates alternatives", "write the characters of the set without it, such as [ab]"},
		{"a backward range", "[z-a]", "has a set whose range z-a runs backwards, so that it can match nothing", "write a-z"},
		{"too wide a mixed set", "[_一-龥]", "has a set of more than 4096 characters", "write a smaller set, or ?"},
		{"bad UTF-8", "a\xff", "is not valid UTF-8", "write it in UTF-8"},
		{"too long", strings.Repeat("a", match.MaxPattern+1), "is longer than 4096 bytes", "write a glob that covers the names, or several hooks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := match.Compile(c.pattern)
			e, ok := errors.AsType[*match.SyntaxError](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if d := cmp.Diff([]string{c.message, c.hint}, []string{e.Message, e.Hint}); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestOffsetsPointAtTheFault(t *testing.T) {
	for pattern, offset := range map[string]int{"Write | [bc": 8, "ü|a.*": 4, "a|b$": 3, "^a": 0} {
		_, err := match.Compile(pattern)
		e, ok := errors.AsType[*match.SyntaxError](err)
		if !ok || e.Offset != offset {
			t.Errorf("%q: got %v, want offset %d", pattern, err, offset)
		}
	}
}

func TestErrorIsASentence(t *testing.T) {
	_, err := match.Compile("mcp__.*")
	want := `the pattern "mcp__.*" has .* in it, which is a regular expression; matchers are globs; write "mcp__*", or [.]* for a dot and anything after it`
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

func TestExactAndAll(t *testing.T) {
	for _, c := range []struct {
		pattern string
		names   []string
		ok, all bool
	}{
		{"Write | C[+]", []string{"Write", "C+"}, true, false},
		{"Write|a*", nil, false, false},
		{"", nil, false, true},
		{"a|*", nil, false, true},
	} {
		m, err := match.Compile(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		names, ok := m.Exact()
		if d := cmp.Diff(c.names, names); d != "" || ok != c.ok || m.All() != c.all {
			t.Errorf("%q: names %v, exact %v, all %v", c.pattern, names, ok, m.All())
		}
	}
}

// TestFastPathsDoNotAllocate protects the budget of a call, which 'loadtest bench' checks: each call matches the
// patterns of all hooks.
func TestFastPathsDoNotAllocate(t *testing.T) {
	for _, pattern := range []string{"", "*", "Write|Edit", "a|b|c|d|e|f|g|h|i|Write", "W*|x"} {
		m, err := match.Compile(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(100, func() { m.Match("Write") }); n != 0 {
			t.Errorf("%q allocates %v times", pattern, n)
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	for _, pattern := range []string{"", "Write", "Write|Edit|Read", "mcp__*", "*a*b*c*", "[!a-z_]*x"} {
		m, err := match.Compile(pattern)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("pattern="+pattern, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Match("mcp__server__read_media")
			}
		})
	}
}
