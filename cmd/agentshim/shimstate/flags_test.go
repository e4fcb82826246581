package shimstate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
	"github.com/hookfabric/hookfabric/schema"
)

func TestFlagsAreBounded(t *testing.T) {
	f := shimstate.Folder(t.TempDir())
	many := map[string]jsontext.Value{}
	for i := range schema.MaxFlags {
		many[fmt.Sprint("flag", i)] = jsontext.Value("1")
	}
	if err := f.SetFlags("a", "s", many); err != nil {
		t.Fatal(err)
	}
	before := string(f.Flags("a", "s"))
	long := jsontext.Value(`"` + strings.Repeat("x", schema.MaxFlagValue-2) + `"`)
	for name, set := range map[string]map[string]jsontext.Value{
		"one too many": {"more": jsontext.Value("1")},
		"too long":     {"flag0": long, "flag1": long, "flag2": long, "flag3": long},
	} {
		if err := f.SetFlags("a", "s", set); err == nil || string(f.Flags("a", "s")) != before {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f.SetFlags("a", "s", map[string]jsontext.Value{"flag0": jsontext.Value("null"), "more": jsontext.Value("1")}); err != nil {
		t.Errorf("one in another's place: %v", err)
	}
}

// A damaged file of flags counts as empty, and the next flags replace it.
func TestFlagsThatCanNotBeReadAreNone(t *testing.T) {
	dir := t.TempDir()
	f := shimstate.Folder(dir)
	one := map[string]jsontext.Value{"a": jsontext.Value("1")}
	if err := f.SetFlags("a", "s", one); err != nil {
		t.Fatal(err)
	}
	broken := 0
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".json") {
			broken++
			return os.WriteFile(path, []byte(`{"a":`), 0o600)
		}
		return err
	})
	if err != nil || broken != 1 {
		t.Fatal(err, broken)
	}
	if got := f.Flags("a", "s"); got != nil {
		t.Errorf("%s", got)
	}
	if err := f.SetFlags("a", "s", one); err != nil || string(f.Flags("a", "s")) != `{"a":1}` {
		t.Errorf("%v, %s", err, f.Flags("a", "s"))
	}
}
