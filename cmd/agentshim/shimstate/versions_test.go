package shimstate_test

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/cmd/agentshim/shimstate"
)

func TestVersionsAreKept(t *testing.T) {
	dir := t.TempDir()
	f := shimstate.Folder(filepath.Join(dir, "state"))
	if v := f.Versions(); len(v) != 0 {
		t.Errorf("nothing is %v", v)
	}
	var all sync.WaitGroup
	for i := range 8 { // concurrently, and none is lost
		all.Go(func() {
			if err := f.NoteVersion("r"+strconv.Itoa(i), "1.2."+strconv.Itoa(i)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	want := map[string]string{}
	for i := range 8 {
		want["r"+strconv.Itoa(i)] = "1.2." + strconv.Itoa(i)
	}
	if diff := cmp.Diff(want, f.Versions()); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(filepath.Join(dir, "state", "runtimes.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if v := f.Versions(); len(v) != 0 {
		t.Errorf("junk is %v", v)
	}
	if err := f.NoteVersion("claude", "2.1.329"); err != nil || f.Versions()["claude"] != "2.1.329" {
		t.Errorf("%v, %v", f.Versions(), err)
	}
	if err := shimstate.Folder("").NoteVersion("claude", "2"); err != nil {
		t.Error(err)
	}
}
