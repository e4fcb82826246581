package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// The rules, and what stands beside them.
const (
	deployed   = "../../deploy/"
	rulesFile  = deployed + "prometheus/rules.yaml"
	casesFile  = deployed + "prometheus/rules_test.yaml"
	bookFolder = deployed + "runbooks/"
)

// A rule is one of Prometheus' rules.
type rule struct {
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// readStrictly reads a YAML file that has no key that into does not know.
func readStrictly(t testing.TB, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Load(text, into, yaml.WithKnownFields()); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// rules are all of them, in their order.
func rules(t testing.TB) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	readStrictly(t, rulesFile, &file)
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// alerts are the names of the rules that alert.
func alerts(t testing.TB) (names []string) {
	t.Helper()
	for _, r := range rules(t) {
		if r.Alert != "" {
			names = append(names, r.Alert)
		}
	}
	return names
}

// TestAlertsAreComplete checks that each alert has a summary, a severity and a runbook.
func TestAlertsAreComplete(t *testing.T) {
	about := map[string]bool{}
	for _, r := range rules(t) {
		for _, s := range metricsOf(r.Expr).selected {
			about[s.metric] = true
			if strings.HasSuffix(s.metric, "_total") && !regexp.MustCompile(`(increase|rate)\(`+s.metric+`\b`).MatchString(r.Expr) {
				t.Errorf("%s%s looks at the counter %s, which only ever grows; look at its increase", r.Alert, r.Record, s.metric)
			}
		}
		if r.Alert == "" {
			continue
		}
		if r.Annotations["summary"] == "" || !isOneOf(r.Labels["severity"], "page", "ticket") {
			t.Errorf("%s needs a summary, and a severity that is page or ticket: %+v", r.Alert, r)
		}
		if want := "deploy/runbooks/" + r.Alert + ".md"; r.Annotations["runbook"] != want {
			t.Errorf("the runbook of %s is %q, want %q", r.Alert, r.Annotations["runbook"], want)
		}
	}
	for _, name := range []string{"hookfabric_fail_open_total", "hookfabric_injections_oldest_pending_seconds", "hookfabric_injections_expired_total",
		"hookfabric_lease_expirations_total", "hookfabric_shed_total", "hookfabric_mirror_lag_seconds", "hookfabric_stream_copies",
		"hookfabric_unjudged_calls_total", "hookfabric_ready"} {
		if !about[name] {
			t.Errorf("no rule is about %s, which means trouble", name)
		}
	}
}

// Every alert has a case in which it fires and one in which it does not; promtool,
// where there is one, finds out whether that is so.
func TestAlertsHaveCases(t *testing.T) {
	var file struct {
		Tests []struct {
			Cases []struct {
				Name     string `yaml:"alertname"`
				Expected []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	text, err := os.ReadFile(casesFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, group := range file.Tests {
		for _, c := range group.Cases {
			if len(c.Expected) > 0 {
				fires[c.Name] = true
			} else {
				silent[c.Name] = true
			}
		}
	}
	for _, name := range alerts(t) {
		if !fires[name] || !silent[name] {
			t.Errorf("rules_test.yaml has no case in which %s fires, or none in which it does not", name)
		}
	}
}

// promtool runs it, if it is here.
func promtool(t testing.TB, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("NOT TRIED: there is no promtool here, so that Prometheus takes the rules, and that alerts fire when they should, stays untested; Debian has it in its package prometheus")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestPromtoolTakesTheRules(t *testing.T) {
	promtool(t, "check", "rules", rulesFile)
	promtool(t, "check", "config", deployed+"prometheus/scrape.yaml")
	promtool(t, "test", "rules", casesFile)
}

// What dashboards and runbooks ask is PromQL: as rules of a file promtool reads it.
func TestPromtoolAcceptsTheQueries(t *testing.T) {
	type recorded struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var asked []recorded
	for _, expr := range slices.Concat(dashboardQueries(t), bookQueries(t)) {
		asked = append(asked, recorded{"asked", expr})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "asked", "rules": asked}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "asked.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", "--lint=none", file)
}
