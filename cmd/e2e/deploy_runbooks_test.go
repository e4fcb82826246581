package e2e_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	bookHeading = regexp.MustCompile(`(?m)^## (.*)$`)
	bookBlock   = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")
	bookLink    = regexp.MustCompile(`\]\(([^)#]+)\)`)
)

// bookQueries are the PromQL of all runbooks.
func bookQueries(t testing.TB) (all []string) {
	t.Helper()
	for _, text := range books(t) {
		for _, b := range bookBlock.FindAllStringSubmatch(text, -1) {
			if b[1] == "promql" {
				all = append(all, strings.TrimSpace(b[2]))
			}
		}
	}
	return all
}

// books are the runbooks by their alerts.
func books(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob(bookFolder + "*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(file), ".md")] = string(text)
	}
	return all
}

// There is one runbook for each alert. It says what the alert means, what to look
// at with commands that there are, what to do, and how one knows that it is over.
func TestRunbooks(t *testing.T) {
	all, named, help := books(t), alerts(t), helpOfAll(t)
	for name, text := range all {
		if !slices.Contains(named, name) {
			t.Errorf("the runbook %s is of no alert", name)
		}
		var headings []string
		for _, m := range bookHeading.FindAllStringSubmatch(text, -1) {
			headings = append(headings, m[1])
		}
		if !strings.HasPrefix(text, "# "+name+"\n\n") || !slices.Equal(headings, []string{"Look", "Do", "Over"}) {
			t.Errorf("the runbook %s has the parts %q, want its name, what it means, Look, Do and Over", name, headings)
		}
		for _, m := range bookLink.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(bookFolder, m[1])); err != nil {
				t.Errorf("the runbook %s: %v", name, err)
			}
		}
		namesCommands(t, "the runbook "+name, text, help)
		commands := 0
		for _, b := range bookBlock.FindAllStringSubmatch(text, -1) {
			switch b[1] {
			case "sh":
				for line := range strings.Lines(b[2]) {
					commands++
					understands(t, "the runbook "+name, strings.Fields(line))
				}
			case "promql":
				commands++
			}
		}
		if commands == 0 {
			t.Errorf("the runbook %s names nothing to look with", name)
		}
	}
	for _, name := range named {
		if all[name] == "" {
			t.Errorf("%s has no runbook", name)
		}
	}
}
