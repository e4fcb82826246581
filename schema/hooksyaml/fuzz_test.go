package hooksyaml_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

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
		doc, err := hooksyaml.Read("f.yaml", data, hooksyaml.Options{CheckCondition: conditions})
		if err == nil {
			sound(t, doc)
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
