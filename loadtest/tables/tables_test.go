package tables

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBenchmarksAgreeWithTheirFiles holds the page to the files beside it.
func TestBenchmarksAgreeWithTheirFiles(t *testing.T) {
	page, err := os.ReadFile("../../BENCHMARKS.md")
	if err != nil {
		t.Fatal(err)
	}
	filled, err := Fill(string(page), "../figures")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(page), filled); diff != "" {
		t.Errorf("BENCHMARKS.md does not say what loadtest/figures says; run `go run ./loadtest tables loadtest/figures --into BENCHMARKS.md`:\n%s", diff)
	}
	for _, name := range Names() {
		if !strings.Contains(string(page), "<!-- figures: "+name+" -->\n") {
			t.Errorf("BENCHMARKS.md shows no %s", name)
		}
	}
}

// figures is a folder with these files.
func figures(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const benched = `{"scenario": "bench", "started": "2026-11-01T10:20:30Z", "took": 61.5, "command": "loadtest bench", "machine": {"os": "linux", "cpus": 2, "load": 0.3, "revision": "abc"},
"figures": [{"name": "no hook matches, p50, 1 caller", "unit": "ratio", "value": 0.7, "low": 0.65, "high": 0.8, "budget": 0.6}],
"rows": [
  {"name": "no hook matches", "callers": 1, "metric": "p50", "ratio": 0.7, "low": 0.65, "high": 0.8, "budget": 0.6, "ok": false},
  {"name": "no hook matches", "callers": 16, "metric": "p50", "ratio": 0.5, "low": 0.4, "high": 0.6, "budget": 0.9, "ok": true},
  {"name": "no hook matches", "callers": 16, "metric": "throughput", "ratio": 1.5, "low": 1.4, "high": 1.6, "budget": 1.1, "ok": true},
  {"name": "command hook per call", "callers": 1, "metric": "p50", "ratio": 9, "low": 8, "high": 10, "budget": null, "ok": true}],
"absolute": [
  {"name": "raw", "callers": 1, "p50": "100us", "p99": "1ms", "per_second": 9000, "costs": {"requester": {"cpu": "10us"}, "broker": {"cpu": "5us"}}},
  {"name": "raw", "callers": 16, "p50": "200us", "p99": "2ms", "per_second": 30000, "costs": {"requester": {"cpu": "4us"}, "broker": {"cpu": "3us"}}}]}`

func TestViews(t *testing.T) {
	dir := figures(t, map[string]string{
		"bench.json":  benched,
		"faults.json": `{"scenario": "soak", "title": "For long", "checks": [{"name": "all | right", "seen": 9, "wrong": 1, "examples": ["one"]}], "notes": ["It was long."]}`,
		"cluster.json": `{"scenario": "cluster", "title": "Three", "tables": [{"title": "Putting", "columns": ["", "fault"], "rows": [["kill", "kill broker-1"]]}, {"title": "kill: Latency", "columns": ["p50"], "rows": [["1 ms"]]}],
			"checks": [{"name": "it waits", "seen": 9}]}`,
		"scale.json": `{"scenario": "scale", "units": {"call": 20e-6, "local_call": 20e-6, "remote_call": 20e-6}, "tables": [
			{"title": "Hooks", "columns": ["hooks", "broker's CPU", "CPU : the first [95 %]"], "rows": [
				["inside broker, 1 hook", "80 µs", "1.00"], ["inside broker, 8 hooks", "90 µs", "1.10"], ["inside broker, 16 hooks", "110 µs", "1.35"],
				["of a pool, 1 hook", "200 µs", "1.00"], ["of a pool, 2 hooks", "210 µs", "1.05"]]},
			{"title": "Workers", "columns": ["workers"], "rows": [["1"]]},
			{"title": "Agents", "columns": ["agents", "broker's CPU", "CPU : the first [95 %]"], "rows": [["10 agents", "20 µs", "1.00"], ["100 agents", "30 µs", "1.50"]]}]}`,
	})
	for view, want := range map[string]string{
		"cluster":  "Three\n\n**Putting**\n\n|  | fault |\n|---|---|\n| kill | kill broker-1 |\n\n| check |",
		"budgets":  "| no hook matches | 0.70 [0.65 0.80] ≤ 0.60 OVER BUDGET | 0.50 [0.40 0.60] ≤ 0.90 ok | 1.50 [1.40 1.60] ≥ 1.10 ok |\n",
		"webhooks": "|  | p50, 1 caller |\n|---|---|\n| command hook per call | 9.00 [8.00 10.00] |\n",
		"costs":    "| raw | 100 µs | 1 ms | 15 µs (5 µs) | 200 µs | 2 ms | 30,000/s | 7 µs (3 µs) |\n",
		"over":     "| bench | no hook matches, p50, 1 caller | 0.700 × | [0.650 0.800] | ≤ 0.600 × |\n| faults | all \\| right | wrong 1 times of 9 |  | never |\n",
		"faults":   "For long\n\n| check | seen | wrong |  |\n|---|---|---|---|\n| all \\| right | 9 | 1 | VIOLATION |\n\n```\nall | right: one\n```\n\nIt was long.\n",
		"runs":     "| bench.json | `loadtest bench` | 2026-11-01 10:20 UTC | 1m2s | 0.3 | abc | 0 of 1 budgets kept |\n",
		"flat":     "|---|---|---|---|---|\n| Hooks: inside broker | 1 hook | 16 hooks | 80 µs → 110 µs | 1.35 |\n| Hooks: of a pool | 1 hook | 2 hooks | 200 µs → 210 µs | 1.05 |\n| Agents | 10 agents | 100 agents | 20 µs → 30 µs | 1.50 |\n",
		"model":    "| brokers' CPU | 2 cores | 100,000 /s × 20 µs + 2 × 555 /s × 0 µs |\n",
	} {
		t.Run(view, func(t *testing.T) {
			got, err := View(dir, view)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(got, want) {
				t.Errorf("it is\n%s\nwithout\n%s", got, want)
			}
		})
	}
}

func TestFillReplacesWhatStandsBetweenMarkers(t *testing.T) {
	const page = "# Title\n<!-- figures: webhooks -->\nold\n<!-- end -->\nmiddle\n<!-- figures: knee -->\nold\n<!-- end -->\nlast\n"
	dir := figures(t, map[string]string{"bench.json": benched})
	once, err := Fill(page, dir)
	if err != nil {
		t.Fatal(err)
	}
	want := "# Title\n<!-- figures: webhooks -->\n\n|  | p50, 1 caller |\n|---|---|\n| command hook per call | 9.00 [8.00 10.00] |\n\n<!-- end -->\nmiddle\n<!-- figures: knee -->\n<!-- end -->\nlast\n"
	if diff := cmp.Diff(want, once); diff != "" {
		t.Error(diff)
	}
	if twice, err := Fill(once, dir); err != nil || twice != once {
		t.Errorf("filled once more it is another page, %v:\n%s", err, twice)
	}
}

func TestWhatCanNotBeFilled(t *testing.T) {
	for name, c := range map[string]struct{ page, want string }{
		"figures that nobody knows":       {"<!-- figures: weather -->\n<!-- end -->\n", `no figures "weather"`},
		"a marker without an end":         {"<!-- figures: knee -->\n", `"knee" have no <!-- end -->`},
		"a marker in front of the end":    {"<!-- figures: knee -->\n<!-- figures: over -->\n<!-- end -->\n", `"knee" have no <!-- end -->`},
		"a file that no load test writes": {"<!-- figures: costs -->\n<!-- end -->\n", "bench.json is not what bench writes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Fill(c.page, figures(t, map[string]string{"bench.json": "root:x:0:0"}))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it says %v", err)
			}
		})
	}
}
