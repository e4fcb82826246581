package builtin

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookfabric/hookfabric/schema"
)

// every has an option of each type.
type every struct {
	Text   string            `json:"text"`
	Flag   bool              `json:"flag"`
	Count  int               `json:"count"`
	Share  float64           `json:"share"`
	List   []string          `json:"list"`
	Object map[string]string `json:"object"`
}

func TestOptionsAreReadIntoTheirTypes(t *testing.T) {
	got, err := options[every](schema.Hook{Handler: "x", Options: map[string]any{
		"text": "a", "flag": true, "count": 3.0, "share": 0.5, "list": []any{"b"}, "object": map[string]any{"c": "d"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := every{Text: "a", Flag: true, Count: 3, Share: 0.5, List: []string{"b"}, Object: map[string]string{"c": "d"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the options differ (-want +got):\n%s", diff)
	}
}

func TestErrorsNameTypesInPlainWords(t *testing.T) {
	for want, o := range map[string]map[string]any{
		`"flag" of "x" is a string; it must be a boolean`:       {"flag": "yes"},
		`"count" of "x" is a string; it must be a whole number`: {"count": "3"},
		`"count" of "x" is a number; it must be a whole number`: {"count": 0.5},
		`"share" of "x" is a list; it must be a number`:         {"share": []any{}},
		`"list" of "x" is a string; it must be a list`:          {"list": "a"},
		`"object" of "x" is a list; it must be an object`:       {"object": []any{}},
		`"x" has no option "txt"; it has text, flag, count`:     {"txt": "a"},
	} {
		if _, err := options[every](schema.Hook{Handler: "x", Options: o}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %q in it", o, err, want)
		}
	}
}
