package builtin

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestWorkspacesAreMovedAtTheBoundariesOfPaths(t *testing.T) {
	for name, c := range map[string]struct{ text, from, want string }{
		"a file in it":                  {"see /w/a/x.go", "/w/a", "see W/x.go"},
		"the folder itself":             {"/w/a", "/w/a", "W"},
		"with a slash at its end":       {"/w/a/ and /w/a", "/w/a/", "W/ and W"},
		"another folder":                {"/w/ab/x", "/w/a", "/w/ab/x"},
		"a folder with a sign":          {"/w/a-b /w/a_b /w/a.b /w/a+b /w/aä", "/w/a", "/w/a-b /w/a_b /w/a.b /w/a+b /w/aä"},
		"a deeper folder":               {"/x/w/a/y x/w/a ./w/a ~/w/a", "/w/a", "/x/w/a/y x/w/a ./w/a ~/w/a"},
		"the end of a sentence":         {"It is in /w/a. Look!", "/w/a", "It is in W. Look!"},
		"the very end":                  {"It is in /w/a.", "/w/a", "It is in W."},
		"a folder above":                {"/w/a/../b /w/a..b", "/w/a", "W/../b /w/a..b"},
		"in quotes and lists":           {`"/w/a/x",'/w/a',(/w/a):/w/a;PATH=/w/a:/w/a/bin`, "/w/a", `"W/x",'W',(W):W;PATH=W:W/bin`},
		"a URL":                         {"file:///w/a/x", "/w/a", "file://W/x"},
		"twice in a row":                {"/w/a/w/a", "/w/a", "W/w/a"},
		"matches that overlap":          {"/a/a/a/ab", "/a/a", "W/a/ab"},
		"a match inside of none":        {"x/a /a /a", "/a /a", "x/a W"},
		"on Windows":                    {`C:\w\a\x and C:\w\ab`, `C:\w\a`, `W\x and C:\w\ab`},
		"a relative folder":             {"in .massgen/a_ws/x", ".massgen/a_ws", "in W/x"},
		"a word is no folder":           {"put it out", "out", "put it out"},
		"the root is no workspace":      {"/etc/passwd", "/", "/etc/passwd"},
		"no workspace":                  {"/etc/passwd", "", "/etc/passwd"},
		"a path that follows a letter":  {"ä/w/a", "/w/a", "ä/w/a"},
		"no text":                       {"", "/w/a", ""},
		"a text that ends in the midst": {"/w/", "/w/a", "/w/"},
	} {
		if got := moved(c.text, c.from, "W"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Nothing but whole mentions of the folder changes, and none is left.
func TestMovingKeepsTheRestOfTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOf(rapid.SampledFrom([]string{"/w/a", "/w", "/a", "b", " ", ".", "/", "ä", "-", "://", "\n", "\xff"})).Draw(t, "pieces")
		text := strings.Join(pieces, "")
		got := moved(text, "/w/a", "\x00")
		if back := strings.ReplaceAll(got, "\x00", "/w/a"); back != text {
			t.Errorf("%q became %q", text, got)
		}
		if spaced := moved(" "+text+" /w/a /w/a/x", "/w/a", "\x00"); !strings.HasSuffix(spaced, " \x00 \x00/x") {
			t.Errorf("mentions are left in %q", spaced)
		}
	})
}
