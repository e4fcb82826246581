package builtin

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The limit counts the entries that were read, so that a large folder costs no more than
// a full one.
func TestAPatternReadsALimitedNumberOfFiles(t *testing.T) {
	dir := tree(t, "w/many/", "w/few/x")
	for i := range maxGlobbed {
		if err := os.Link(filepath.Join(dir, "w/few/x"), filepath.Join(dir, "w/many", fmt.Sprint("f", i))); err != nil {
			t.Fatal(err)
		}
	}
	h := permission(t, map[string]any{"allow": []any{dir + "/w"}})
	refused := func(want string) {
		t.Helper()
		if got := judged(t, h, filepath.Join(dir, "w"), "Glob", `{"pattern":"many/q*/x"}`); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("refused %q, want %q", got, want)
		}
	}
	refused("")
	if err := os.WriteFile(filepath.Join(dir, "w/many/more"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	refused("matches more than 10000 files; name a folder further down")
	if entries, err := readSome(filepath.Join(dir, "w/many"), 100); len(entries) != 100 || err != nil {
		t.Errorf("of a folder %d entries are read, %v", len(entries), err)
	}
}
