package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/loadtest/internal/report"
)

func TestARunThatIsOverIsShown(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	run := func(scenario string) string {
		d := report.Document{
			Scenario: scenario, Title: "how " + scenario + " went",
			Figures: []report.Figure{report.Figured("p50", "s", report.Lower, []float64{0.001, 0.002, 0.003})},
			Plots:   []report.Plot{{Title: "latency", X: report.Axis{Unit: "s"}, Y: report.Axis{Unit: "s"}, Lines: []report.Line{{Name: "p50", X: []float64{1, 2}, Y: []float64{1, 2}}}}},
		}
		if err := write(at(scenario+".json"), &d); err != nil {
			t.Fatal(err)
		}
		return at(scenario + ".json")
	}
	out, err := loadtest(t, "show", run("fleet"), run("soak"), "--html", at("page.html"), "--svg", at("pictures"))
	if err != nil || !strings.Contains(out, "how fleet went") || !strings.Contains(out, "2 ms") {
		t.Errorf("it ends with %v:\n%s", err, out)
	}
	if page, err := os.ReadFile(at("page.html")); err != nil || !strings.Contains(string(page), "how soak went") || strings.Count(string(page), "<svg") != 2 {
		t.Errorf("the page has %d bytes, %v", len(page), err)
	}
	for _, name := range []string{"fleet-latency.svg", "soak-latency.svg"} {
		if _, err := os.Stat(filepath.Join(at("pictures"), name)); err != nil {
			t.Error(err)
		}
	}
	for _, args := range [][]string{{}, {run("fleet"), "--html", at("gone/page.html")}} {
		if _, err := loadtest(t, append([]string{"show"}, args...)...); exitCode(err) != 2 {
			t.Errorf("%q ended with %v", args, err)
		}
	}
	if _, err := loadtest(t, "show", at("gone.json")); err == nil || exitCode(err) != 1 {
		t.Errorf("a run that is not there ended with %v", err)
	}
}
