package app

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheREADMEListsEveryFlagOfHookworker(t *testing.T) {
	var help bytes.Buffer
	if code := Main(t.Context(), []string{"--help"}, strings.NewReader(""), &help, &help); code != 0 {
		t.Fatalf("--help exits with %d: %s", code, &help)
	}
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([\w-]+)`).FindAllStringSubmatch(help.String(), -1) {
		if m[1] != "help" && m[1] != "version" {
			want = append(want, m[1])
		}
	}
	doc, err := os.ReadFile("../../../workers/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| `--.*$").FindAllString(string(doc), -1) {
		cells := strings.Split(row, "|")
		for _, m := range regexp.MustCompile("`--([\\w-]+)`").FindAllStringSubmatch(cells[1], -1) {
			got = append(got, m[1])
			if value := strings.Trim(strings.TrimSpace(cells[2]), "`"); strings.Contains(cells[2], "`") &&
				!regexp.MustCompile(`(?m)^ +--`+m[1]+` .*\(default ["[]?`+regexp.QuoteMeta(value)+`["\]]?\)`).MatchString(help.String()) {
				t.Errorf("the default of --%s is not %s:\n%s", m[1], value, &help)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the flags in workers/README.md differ (-program +document):\n%s", diff)
	}
}
