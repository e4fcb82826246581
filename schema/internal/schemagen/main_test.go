package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckedInSchemasMatchTheGenerator(t *testing.T) {
	const src = "../.."
	fresh := t.TempDir()
	if err := os.Mkdir(filepath.Join(fresh, "control"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := generate(src, fresh); err != nil {
		t.Fatal(err)
	}
	for name := range schemas() {
		file := name + ".schema.json"
		want, err := os.ReadFile(filepath.Join(fresh, file))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(src, file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(got), string(want)); diff != "" {
			t.Errorf("%s is stale; run go generate ./schema (-checked in +generated):\n%s", file, diff)
		}
	}
}

func TestAFolderWithoutSourcesIsAnError(t *testing.T) {
	if err := generate(t.TempDir(), t.TempDir()); err == nil {
		t.Error("schemas were made from nothing")
	}
}
