package cond

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheReferenceNamesEveryField(t *testing.T) {
	doc, err := os.ReadFile("../../../schema/HOOKS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(doc), "\n| field | type | value |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var got []string
	for line := range strings.Lines(table) {
		for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(strings.Split(line, "|")[1], -1) {
			got = append(got, m[1])
		}
	}
	want := slices.Clone(routed)
	for _, f := range fields {
		want = append(want, f.name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the fields of conditions in schema/HOOKS.md differ (-code +document):\n%s", diff)
	}
}
