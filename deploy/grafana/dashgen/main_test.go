package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStoredDashboardsMatchTheGenerator(t *testing.T) {
	fresh := t.TempDir()
	if err := generate(fresh); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../dashboards/*")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != len(dashboards()) {
		t.Errorf("there are %d files, and %d dashboards", len(files), len(dashboards()))
	}
	for _, d := range dashboards() {
		want, err := os.ReadFile(filepath.Join(fresh, d.name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join("../dashboards", d.name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(got), string(want)); diff != "" {
			t.Errorf("%s.json is stale; run go generate ./deploy/grafana/dashgen (-checked in +generated):\n%s", d.name, diff)
		}
	}
}

func TestAMissingFolderIsAnError(t *testing.T) {
	if err := generate(filepath.Join(t.TempDir(), "nowhere")); err == nil {
		t.Error("dashboards were written to nowhere")
	}
}
