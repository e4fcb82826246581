package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hookfabric/hookfabric/schema"
)

const dashboardFolder = deployed + "grafana/dashboards/"

// A dashboard is as much of Grafana's model as the tests look at.
type dashboard struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Type       string `json:"type"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

// A panel is one of its panels; a row has no targets.
type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Datasource  source `json:"datasource"`
	Grid        struct {
		H int `json:"h"`
		W int `json:"w"`
		X int `json:"x"`
		Y int `json:"y"`
	} `json:"gridPos"`
	Field struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []struct {
		Expr       string `json:"expr"`
		Legend     string `json:"legendFormat"`
		Datasource source `json:"datasource"`
	} `json:"targets"`
}

type source struct {
	UID string `json:"uid"`
}

// dashboards are all of them by their files.
func dashboards(t testing.TB) map[string]dashboard {
	t.Helper()
	files, err := filepath.Glob(dashboardFolder + "*.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d dashboards: %v", len(files), err)
	}
	all := make(map[string]dashboard)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := schema.Unmarshal(data, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = d
	}
	return all
}

// plain has an expression as Prometheus gets it from Grafana, with all chosen.
func plain(expr string) string {
	return strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*", "$hook", ".*").Replace(expr)
}

// dashboardQueries are the PromQL of all panels.
func dashboardQueries(t testing.TB) (all []string) {
	t.Helper()
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				all = append(all, plain(q.Expr))
			}
		}
	}
	return all
}

// Dashboards query the chosen Prometheus, have titles and units, and their panels do not overlap.
func TestDashboardsAreSound(t *testing.T) {
	uids := map[string]string{}
	for file, d := range dashboards(t) {
		if other := uids[d.UID]; other != "" || d.UID == "" || d.Title == "" {
			t.Errorf("%s has the uid %q and the title %q; %q has that uid", file, d.UID, d.Title, other)
		}
		uids[d.UID] = file
		names := []string{"__rate_interval"}
		for _, v := range d.Templating.List {
			names = append(names, v.Name)
		}
		if !slices.Contains(names, "datasource") {
			t.Errorf("%s does not let anybody choose a Prometheus", file)
		}
		taken := map[string]string{}
		for _, p := range d.Panels {
			where := fmt.Sprintf("%s, panel %q", file, p.Title)
			for x := p.Grid.X; x < p.Grid.X+p.Grid.W; x++ {
				for y := p.Grid.Y; y < p.Grid.Y+p.Grid.H; y++ {
					cell := fmt.Sprint(x, " ", y)
					if taken[cell] != "" || x >= 24 {
						t.Fatalf("%s lies on the panel %q, or beyond the edge", where, taken[cell])
					}
					taken[cell] = p.Title
				}
			}
			if p.Type == "row" {
				continue
			}
			checkPanel(t, where, &p, names)
		}
	}
}

var dashboardVariable = regexp.MustCompile(`\$(\w+)`)

func checkPanel(t testing.TB, where string, p *panel, variables []string) {
	t.Helper()
	if p.Title == "" || len(p.Description) < 10 || p.Field.Defaults.Unit == "" || len(p.Targets) == 0 {
		t.Errorf("%s needs a title, a description, a unit and a query", where)
	}
	if p.Datasource.UID != "${datasource}" {
		t.Errorf("%s asks %q", where, p.Datasource.UID)
	}
	for _, q := range p.Targets {
		if q.Datasource.UID != "${datasource}" {
			t.Errorf("%s asks %q", where, q.Datasource.UID)
		}
		for _, m := range dashboardVariable.FindAllStringSubmatch(q.Expr, -1) {
			if !slices.Contains(variables, m[1]) {
				t.Errorf("%s: there is no variable $%s", where, m[1])
			}
		}
	}
}
