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
	bookBlock   = regexp.MustCompile("(?ms)^ *```(\\w+)\n(.*?)^ *```$")
	bookLog     = regexp.MustCompile(`msg="([^"]*)"`)
	bookStep    = regexp.MustCompile(`(?m)^1\. `)
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

// Each alert has one runbook. It describes the symptom and the impact, diagnoses the cause
// with commands that exist, and lists the steps to take and the condition that ends the alert.
func TestRunbooks(t *testing.T) {
	all, named, help, sources := books(t), alerts(t), helpOfAll(t), goSources(t)
	for name, text := range all {
		if !slices.Contains(named, name) {
			t.Errorf("the runbook %s has no alert in rules.yaml", name)
		}
		checkParts(t, name, text)
		quotesLogs(t, name, text, sources)
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
			t.Errorf("the runbook %s has no command and no query", name)
		}
	}
	for _, name := range named {
		if all[name] == "" {
			t.Errorf("%s has no runbook", name)
		}
	}
}

// checkParts reports a runbook whose title is not its alert, whose headings differ from those of
// the others, or whose last part has no numbered steps and no condition that ends the alert.
func checkParts(t testing.TB, name, text string) {
	t.Helper()
	var headings []string
	for _, m := range bookHeading.FindAllStringSubmatch(text, -1) {
		headings = append(headings, m[1])
	}
	want := []string{"Symptom", "Impact", "Diagnosis", "Action"}
	if !strings.HasPrefix(text, "# "+name+"\n\n## Symptom\n") || !slices.Equal(headings, want) {
		t.Errorf("the runbook %s has the headings %q, want its name as the title and %q", name, headings, want)
	}
	_, action, _ := strings.Cut(text, "\n## Action\n")
	if !bookStep.MatchString(action) || !strings.Contains(action, " is over when ") {
		t.Errorf("the part Action of the runbook %s needs numbered steps, and a sentence \"The alert is over when …\"", name)
	}
}

// quotesLogs reports messages that a runbook quotes and no program logs. A quotation may be
// shortened with "…".
func quotesLogs(t testing.TB, name, text, sources string) {
	t.Helper()
	for _, m := range bookLog.FindAllStringSubmatch(text, -1) {
		if quoted := strings.TrimSpace(strings.TrimSuffix(m[1], "…")); !strings.Contains(sources, quoted) {
			t.Errorf("the runbook %s quotes the log message %q, which no program has", name, quoted)
		}
	}
}

// goSources returns the Go files of the programs, without tests, as one text.
func goSources(t testing.TB) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range []string{"bus", "cmd", "workers"} {
		err := filepath.WalkDir("../../"+folder, func(path string, d os.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
