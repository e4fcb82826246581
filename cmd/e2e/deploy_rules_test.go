package e2e_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestRulesAreAboutMetricsThatThereAre holds the rules against the README's
// table of metrics, which is held against what a broker shows.
func TestRulesAreAboutMetricsThatThereAre(t *testing.T) {
	text, err := os.ReadFile("../../deploy/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	severity := regexp.MustCompile(`^(page|ticket)$`)
	counter := regexp.MustCompile(`\bincrease\((\w+_total)\[\d+m\]\)`)
	about := map[string]bool{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			names := regexp.MustCompile(`hookfabric_\w+`).FindAllString(r.Expr, -1)
			if r.Alert == "" || r.Annotations["summary"] == "" || !severity.MatchString(r.Labels["severity"]) || len(names) == 0 {
				t.Errorf("an alert needs a name, a summary, a severity and a metric: %+v", r)
			}
			for _, name := range names {
				about[name] = true
				if !strings.Contains(string(readme), "\n| `"+name+"` |") {
					t.Errorf("%s is about %s, which is not in the README's table of metrics", r.Alert, name)
				}
				if strings.HasSuffix(name, "_total") && !counter.MatchString(r.Expr) {
					t.Errorf("%s looks at the counter %s, which only ever grows; alert on its increase", r.Alert, name)
				}
			}
		}
	}
	for _, name := range []string{"hookfabric_fail_open_total", "hookfabric_injections_oldest_pending_seconds", "hookfabric_injections_expired_total",
		"hookfabric_lease_expirations_total", "hookfabric_shed_total", "hookfabric_mirror_lag_seconds"} {
		if !about[name] {
			t.Errorf("no rule is about %s, which means trouble", name)
		}
	}
}
