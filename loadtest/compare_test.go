package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/loadtest/internal/bench"
	"github.com/hookfabric/hookfabric/loadtest/internal/report"
)

// written writes a run with one figure to a file.
func written(t *testing.T, samples ...float64) string {
	t.Helper()
	d := report.Document{Scenario: "bench", Title: "a run", Figures: []report.Figure{report.Figured("p50", "s", report.Lower, samples)}}
	file := filepath.Join(t.TempDir(), "run.json")
	if err := write(file, &bench.Report{Document: d}); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCompareEndsAsItFound(t *testing.T) {
	fast, slow := written(t, 1, 1, 1, 1), written(t, 2, 2, 2, 2)
	page := filepath.Join(t.TempDir(), "page.html")
	out, err := loadtest(t, "compare", fast, slow, "--html", page)
	if !errors.Is(err, errWorse) || !strings.Contains(out, "1 worse") {
		t.Errorf("a slower run ends with %v:\n%s", err, out)
	}
	if body, err := os.ReadFile(page); err != nil || !strings.Contains(string(body), "Before: a run") {
		t.Errorf("the page is %d bytes, %v", len(body), err)
	}
	other := filepath.Join(t.TempDir(), "other.json")
	if err := write(other, &report.Document{Scenario: "soak"}); err != nil {
		t.Fatal(err)
	}
	if _, err := loadtest(t, "compare", fast, other); exitCode(err) != 2 || !strings.Contains(err.Error(), "no figure") {
		t.Errorf("two runs that have nothing in common end with %v", err)
	}
	if out, err := loadtest(t, "compare", fast, fast, ":", slow); !errors.Is(err, errWorse) || !strings.Contains(out, "2 old and 1 new runs") {
		t.Errorf("a slower run than two ends with %v:\n%s", err, out)
	}
	for _, args := range [][]string{
		{slow, fast}, {fast, fast}, {fast, slow, "--no-fail"}, {fast, slow, "--threshold", "150"},
		{fast, slow, ":", slow, fast},
	} {
		if out, err := loadtest(t, append([]string{"compare"}, args...)...); err != nil {
			t.Errorf("%q ends with %v:\n%s", args, err, out)
		}
	}
}

func TestCompareRefusesWhatIsNoRun(t *testing.T) {
	run := written(t, 1)
	for name, c := range map[string]struct {
		body, want string
	}{
		"junk is none":                       {"root:x:0:0", "not a report that a load test wrote"},
		"nor is other JSON":                  {`{"rows": []}`, "names no scenario"},
		"nor is one that contradicts itself": {`{"scenario": "x", "figures": [{"name": "a", "value": 5, "low": 6, "high": 7}]}`, "outside its interval"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "other.json")
			if err := os.WriteFile(file, []byte(c.body), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := loadtest(t, "compare", run, file)
			if err == nil || exitCode(err) != 1 || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file) {
				t.Errorf("it says %v", err)
			}
		})
	}
	if _, err := loadtest(t, "compare", run, filepath.Join(t.TempDir(), "none")); err == nil || exitCode(err) != 1 {
		t.Errorf("of a missing file it says %v", err)
	}
	for _, args := range [][]string{
		{}, {run}, {run, run, run}, {run, ":"}, {":", run}, {run, ":", run, ":", run}, {"--old", run},
		{run, run, "--threshold", "-1"}, {run, run, "--threshold", "NaN"}, {run, run, "--html", filepath.Join(run, "page.html")},
	} {
		if _, err := loadtest(t, append([]string{"compare"}, args...)...); err == nil || exitCode(err) != 2 {
			t.Errorf("%q gave %v", args, err)
		}
	}
}
