package e2e_test

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/bus/bustest"
	"github.com/hookfabric/hookfabric/schema"
)

// A Prometheus scrapes a fabric under load and evaluates the rules, and every panel
// of every dashboard has something to show.
func TestPanelsHaveData(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("NOT TRIED: there is no prometheus here, so that every panel has data stays untested but for its metrics and labels; Debian has it in its package prometheus")
	}
	w := startMetered(t)
	at := startPrometheus(t, w)
	empty := map[string]string{}
	for file, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				empty[plain(q.Expr)] = fmt.Sprintf("%s, panel %q", file, p.Title)
			}
		}
	}
	for _, expr := range bookQueries(t) {
		empty[expr] = "a runbook"
	}
	total := len(empty)
	err := eventually("every query finds something", func() bool {
		w.load(t)
		for expr := range empty {
			if found, err := at.finds(expr); err != nil {
				t.Fatalf("%s asks %s: %v", empty[expr], expr, err)
			} else if found {
				delete(empty, expr)
			}
		}
		return len(empty) == 0
	})
	if err != nil {
		t.Errorf("%v; of %d queries these found nothing: %v", err, total, empty)
	}
	// The rules are evaluated, too: the hook that fails open is what an alert is about.
	if err := eventually("an alert fires", func() bool {
		found, err := at.finds(`ALERTS{alertname="HookfabricFailsOpen",alertstate="firing",hook="open",cause="error"}`)
		return err == nil && found
	}); err != nil {
		t.Error(err)
	}
}

// A prometheus is one that runs, by its URL.
type prometheus string

// startPrometheus starts one that scrapes a fabric by the rules, every second.
func startPrometheus(t testing.TB, w *metered) prometheus {
	t.Helper()
	rules, err := filepath.Abs(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n", rules)
	for job, url := range w.scraped {
		config += fmt.Sprintf("  - {job_name: %s, static_configs: [{targets: [%q]}]}\n", job, strings.TrimPrefix(url, "http://"))
	}
	dir := t.TempDir()
	address := bustest.FreeAddresses(t, 1)[0]
	p := start(t, "prometheus", "--config.file="+write(t, dir, "prometheus.yaml", config), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--log.level=warn")
	at := prometheus("http://" + address)
	if err := eventually("Prometheus is ready", func() bool {
		code, _, err := fetch(string(at) + "/-/ready")
		return err == nil && code == http.StatusOK
	}); err != nil {
		t.Fatalf("%v; it said:\n%s", err, p.said)
	}
	return at
}

// finds reports whether a query has a result that is a number.
func (at prometheus) finds(expr string) (bool, error) {
	_, body, err := fetch(string(at) + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return false, err
	}
	var answer struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   struct {
			Type   string `json:"resultType"`
			Result []struct {
				Value [2]any `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := schema.Unmarshal([]byte(body), &answer); err != nil {
		return false, err
	}
	if answer.Status != "success" {
		return false, fmt.Errorf("%s", answer.Error)
	}
	for _, r := range answer.Data.Result {
		text, _ := r.Value[1].(string)
		if v, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(v) {
			return true, nil
		}
	}
	return false, nil
}
