package hooksyaml_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema/hooksyaml"
)

func FuzzRead(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/faulty/*.yaml"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := hooksyaml.Read("f.yaml", data, compilers())
		if err == nil {
			sound(t, doc)
			rewritten(t, doc)
			return
		}
		fs, ok := errors.AsType[hooksyaml.Faults](err)
		if !ok || len(fs) == 0 || doc != nil {
			t.Fatalf("got %v and %v", doc, err)
		}
		for _, fault := range fs {
			if fault.Line < 1 || fault.Column < 1 || fault.Message == "" || fault.File != "f.yaml" || !utf8.ValidString(fault.Error()) {
				t.Errorf("the fault %+v is not whole", fault)
			}
		}
		if fs.Error() == "" {
			t.Error("the faults say nothing")
		}
	})
}

// rewritten checks that a configuration is the same after it was written and read, except
// for the order of events in a flat list.
func rewritten(t *testing.T, doc *hooksyaml.Document) {
	t.Helper()
	if len(doc.Config.Hooks) > 1000 {
		return // without aliases the file may be too large
	}
	text := hooksyaml.Write(&doc.Config)
	if len(text) > 64<<10 {
		return // or too large to compare in a fuzzer's time
	}
	again, err := hooksyaml.Read("written.yaml", text, hooksyaml.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	readsBack(t, &again.Config)
	if d := cmp.Diff(string(text), string(hooksyaml.Write(&again.Config))); d != "" {
		t.Errorf("the configuration changed (-before +after):\n%s", d)
	}
}
