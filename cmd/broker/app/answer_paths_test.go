package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAllNamesOfTheWorkspaceBecomeOnePath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := os.MkdirAll("real/a/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"link": "real/a", "up": "real"} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	for text, want := range map[string]string{
		"see DIR/link/x.go":             "see W/x.go",
		"see DIR/up/a/x.go, DIR/up/b/x": "see W/x.go, DIR/up/b/x",
		"cc -IDIR/link/x @DIR/link":     "cc -IW/x @W",
		"./real/a/x and up/a/sub":       "W/x and W/sub",
		"It is in DIR/link/.":           "It is in W/.",
		"link and real/ab and /":        "link and real/ab and /",
		"DIR/real/a/../a/x":             "W/x",
		"file://DIR/link/x":             "file:W/x",
		`{"f":"DIR/link/x"}`:            `{"f":"W/x"}`,
		`"\/real\/a DIR\/real\/a\/x"`:   `"\/real\/a W\/x"`,
	} {
		got := calledBy(strings.ReplaceAll(text, "DIR", dir), filepath.Join(dir, "link"))
		if want = strings.NewReplacer("DIR", dir, "W", dir+"/link").Replace(want); got != want {
			t.Errorf("%s:\n     %s\nwant %s", text, got, want)
		}
	}
}
