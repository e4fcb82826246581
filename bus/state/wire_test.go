package state

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookfabric/hookfabric/schema"
)

// The test decodes the values in wire.md and encodes them again.
func TestTheContractShowsTheValuesOfTheBucket(t *testing.T) {
	doc, err := os.ReadFile("../../schema/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile("(?s)## 9\\. .*?```json\n(.*?)```.*?```json\n(.*?)```.*?## 10\\. ").FindSubmatch(doc)
	if shown == nil {
		t.Fatal("section 9 shows no values")
	}
	p, err := parsePointer(shown[1])
	if err != nil {
		t.Fatal(err)
	}
	var n Node
	if err := schema.Unmarshal(shown[2], &n); err != nil {
		t.Fatal(err)
	}
	for i, v := range []any{p, n} {
		written, err := schema.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(members(t, shown[i+1]), members(t, written)); d != "" {
			t.Errorf("-shown +written:\n%s", d)
		}
	}
}

func members(t *testing.T, data []byte) (all map[string]any) {
	t.Helper()
	if err := schema.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}
