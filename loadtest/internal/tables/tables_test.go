package tables

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pages returns the documents with figures.
func pages() []string { return []string{"../../../README.md", "../../BENCHMARKS.md"} }

// TestPagesAgreeWithTheFigures compares the pages with the files in loadtest/figures.
func TestPagesAgreeWithTheFigures(t *testing.T) {
	var all strings.Builder
	for _, name := range pages() {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		filled, err := Fill(string(page), "../../figures")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(page), filled); diff != "" {
			t.Errorf("%s differs from loadtest/figures; run `go run ./loadtest tables loadtest/figures --into %s`:\n%s", name, strings.TrimPrefix(name, "../../../"), diff)
		}
		all.Write(page)
	}
	for _, name := range Names() {
		if !strings.Contains(all.String(), "<!-- figures: "+name+" -->\n") {
			t.Errorf("no page shows %s", name)
		}
	}
}

// figures returns a folder with these files.
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
"figures": [{"name": "no hook, p50, 1 caller", "unit": "ratio", "value": 0.7, "low": 0.65, "high": 0.8, "budget": 0.6}],
"absolute": [
  {"name": "raw", "callers": 1, "p50": "100us", "p99": "1ms", "per_second": 9000, "costs": {"requester": {"cpu": "10us"}, "broker": {"cpu": "5us"}}},
  {"name": "raw", "callers": 16, "p50": "200us", "p99": "2ms", "per_second": 30000, "costs": {"requester": {"cpu": "4us"}, "broker": {"cpu": "3us"}}}]}`

const scaled = `{"scenario": "scale", "units": {"call": 20e-6, "local_call": 20e-6, "remote_call": 20e-6}}`

func TestViews(t *testing.T) {
	dir := figures(t, map[string]string{
		"bench.json":   benched,
		"faults.json":  `{"scenario": "soak", "checks": [{"name": "all | right", "seen": 9, "wrong": 1, "examples": ["one"]}, {"name": "no call is lost", "seen": 1000}]}`,
		"cluster.json": `{"scenario": "cluster", "checks": [{"name": "no call is lost", "seen": 500}]}`,
		"scale.json":   scaled,
	})
	for view, want := range map[string]string{
		"checks": "|---|---|---|---|\n| all \\| right | 9 | 1 | faults |\n| no call is lost | 1,500 | 0 | faults, cluster |\n",
		"costs":  "| bare NATS, another process | 100 µs | 1 ms | 15 µs (5 µs) | 200 µs | 2 ms | 30,000/s | 7 µs (3 µs) |\n",
		"over":   "| bench | no hook, p50, 1 caller | 0.700 × | [0.650 0.800] | ≤ 0.600 × |\n| faults | all \\| right | wrong 1 times of 9 |  | never |\n",
		"runs":   "| `loadtest bench` | 2026-11-01 | 1m2s | 0.3 | abc | 0 of 1 budgets kept |\n",
		"model":  "| brokers' CPU | 2 cores | 100,000/s × 20 µs + 2 × 556/s × 0 s |\n",
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

func TestAGridNamesItsFigures(t *testing.T) {
	dir := figures(t, map[string]string{"bench.json": benched})
	row := [2]string{"no match", "no hook, %s"}
	for name, c := range map[string]struct {
		rows [][2]string
		want string
	}{
		"a figure has its interval and its budget": {[][2]string{row}, "|  | one |\n|---|---|\n| no match | 0.700 [0.650 0.800] ≤ 0.600 OVER BUDGET |\n"},
		"a row without a figure is an error":       {[][2]string{row, {"", "weather, %s"}}, `bench.json has no figure "weather, %s"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := grid{Run: "bench", Columns: [][2]string{{"one", "p50, 1 caller"}}, Rows: c.rows}.view(dir)
			if err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, c.want) {
				t.Errorf("it is\n%s\nand not\n%s", got, c.want)
			}
		})
	}
	if _, err := (grid{Run: "bench", Columns: [][2]string{{"one", "p50, 1 caller"}, {"two", "p51"}}, Rows: [][2]string{row}}).view(dir); err == nil {
		t.Error("a column without any figure is no error")
	}
}

func TestASeriesNamesItsFigures(t *testing.T) {
	for want, s := range map[string][3]string{
		"hooks: inside broker, 1 hook, CPU of a call": {"hooks: inside broker", "hook", "1"},
		"agents: 10 agents, CPU of a call":            {"agents", "agent", "10"},
		"pending: for others, 0 items, CPU of a call": {"pending: for others", "item", "0"},
	} {
		if got := stepName(s[0], s[1], s[2], "CPU of a call"); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
	}
	if _, err := View(figures(t, map[string]string{"scale.json": scaled}), "growth"); err == nil || !strings.Contains(err.Error(), "no figure") {
		t.Errorf("a series without figures ends with %v", err)
	}
}

func TestFillReplacesWhatStandsBetweenMarkers(t *testing.T) {
	const page = "# Title\n<!-- figures: over -->\nold\n<!-- end -->\nmiddle\n<!-- figures: knee -->\nold\n<!-- end -->\nlast\n"
	dir := figures(t, map[string]string{"bench.json": benched})
	once, err := Fill(page, dir)
	if err != nil {
		t.Fatal(err)
	}
	want := "# Title\n<!-- figures: over -->\n\n| run | figure or check | value | 95 % interval | budget |\n|---|---|---|---|---|\n| bench | no hook, p50, 1 caller | 0.700 × | [0.650 0.800] | ≤ 0.600 × |\n\n<!-- end -->\nmiddle\n<!-- figures: knee -->\n<!-- end -->\nlast\n"
	if diff := cmp.Diff(want, once); diff != "" {
		t.Error(diff)
	}
	if twice, err := Fill(once, dir); err != nil || twice != once {
		t.Errorf("filled once more it is another page, %v:\n%s", err, twice)
	}
}

func TestFillRefusesABrokenPage(t *testing.T) {
	for name, c := range map[string]struct{ page, want string }{
		"an unknown name of figures":      {"<!-- figures: weather -->\n<!-- end -->\n", `the name "weather" is unknown`},
		"a marker without an end":         {"<!-- figures: knee -->\n", `"knee" has no <!-- end -->`},
		"a marker in front of the end":    {"<!-- figures: knee -->\n<!-- figures: over -->\n<!-- end -->\n", `"knee" has no <!-- end -->`},
		"a file that no load test writes": {"<!-- figures: costs -->\n<!-- end -->\n", "bench.json is not a report of `loadtest bench`"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Fill(c.page, figures(t, map[string]string{"bench.json": "root:x:0:0"}))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("it says %v", err)
			}
		})
	}
}
