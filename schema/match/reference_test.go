package match_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/hookfabric/hookfabric/schema/match"
)

// reference is a naive matcher for comparison: fnmatch as in the shell, with
// alternatives.
func reference(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	for alternative := range strings.SplitSeq(pattern, "|") {
		if a := strings.Trim(alternative, " \t\r\n"); a != "" && fnmatch([]rune(a), []rune(name)) {
			return true
		}
	}
	return false
}

// fnmatch follows all ways to match at once. at has the places in p that the characters
// so far may lead to.
func fnmatch(p, s []rune) bool {
	at := reach(p, map[int]bool{0: true})
	for _, r := range s {
		next := map[int]bool{}
		for i := range at {
			switch {
			case i == len(p):
			case p[i] == '*':
				next[i] = true
			case p[i] == '[':
				if end := closing(p[i:]); inSet(p[i+1:i+end], r) {
					next[i+end+1] = true
				}
			case p[i] == '?' || p[i] == r:
				next[i+1] = true
			}
		}
		at = reach(p, next)
	}
	return at[len(p)]
}

// reach adds the places that a star can skip to.
func reach(p []rune, at map[int]bool) map[int]bool {
	for i := range p {
		if at[i] && p[i] == '*' {
			at[i+1] = true
		}
	}
	return at
}

func closing(p []rune) int {
	i := 1
	if p[i] == '!' {
		i++
	}
	for i++; p[i] != ']'; i++ {
	}
	return i
}

func inSet(set []rune, r rune) bool {
	if set[0] == '!' {
		return !member(set[1:], r)
	}
	return member(set, r)
}

func member(set []rune, r rune) bool {
	for len(set) > 0 {
		if len(set) > 2 && set[1] == '-' {
			if set[0] <= r && r <= set[2] {
				return true
			}
			set = set[3:]
			continue
		}
		if set[0] == r {
			return true
		}
		set = set[1:]
	}
	return false
}

func TestAgreesWithTheReference(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "b", "c", "!", "-", "]", "[", "[", "*", "?", "{", "}", ",", "|", " ", ".", `\`, "ü",
		"[ab]", "[!b]", "[a-c]", "[!a-b-]", "[]-]", "[!]x]", "[-!]", "[{,}]", "**", "[*]", `[\]`, "[!!]", "[!-+]", "[a!-.]"})
	letter := rapid.SampledFrom([]string{"a", "b", "c", "!", "-", "]", "[", "*", "?", "{", "}", ",", ".", `\`, "ü", "x", "/"})
	compiled := 0
	rapid.Check(t, func(t *rapid.T) {
		pattern := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "pattern"), "")
		m, err := match.Compile(pattern)
		if err != nil {
			return
		}
		compiled++
		for range 8 {
			name := strings.Join(rapid.SliceOfN(letter, 0, 8).Draw(t, "name"), "")
			if got, want := m.Match(name), reference(pattern, name); got != want {
				t.Fatalf("%q on %q: %v, the reference says %v", pattern, name, got, want)
			}
		}
	})
	t.Logf("%d patterns compiled", compiled)
	if compiled == 0 {
		t.Error("no generated pattern compiled")
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{"", "*", "Write|Edit", "mcp__*", "[!a-c-]x?", "[]]", "{a,b}**", `a\`, "(a|b)+", "[[:alpha:]]", "[^]", "[!-~]", "a[", "|"} {
		f.Add(s, "mcp__x")
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		m, err := match.Compile(pattern)
		if err != nil {
			return
		}
		got := m.Match(name)
		// The reference reads characters, and the matcher bytes, so names that are not
		// valid UTF-8 may differ. Long names take it too long.
		if len(pattern) > 64 || len(name) > 64 || !utf8.ValidString(name) {
			return
		}
		if want := reference(pattern, name); got != want {
			t.Fatalf("%q on %q: %v, the reference says %v", pattern, name, got, want)
		}
	})
}
